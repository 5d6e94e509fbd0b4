// An average and its standard error, to compare with a law.
//
// Draws of one chain are dependent: their error uses our own effective sample size (core/diagnostics). Chains (each has
// its own key) and coordinates of a potential that couples none are independent, so their plain spread is the error.
// StandardErrors.* of langevin_laws_test.cc shows that both errors agree.
#pragma once

#include <cmath>
#include <vector>

#include "core/diagnostics/mcse.h"

namespace chainfleet::testing {

struct Estimate {
  double value = 0, error = 0;
};

// Returns the estimate from independent values.
inline Estimate EstimateOf(const std::vector<double>& values) {
  double sum = 0, sum2 = 0;
  for (const double value : values) {
    sum += value;
    sum2 += value * value;
  }
  const double n = static_cast<double>(values.size()), mean = sum / n;
  return {mean, std::sqrt((sum2 / n - mean * mean) / (n - 1))};
}

// Returns the estimate from the draws of chains, in order.
inline Estimate EstimateOf(Traces traces) { return {Mean(traces.values), McseMean(traces)}; }

}  // namespace chainfleet::testing
