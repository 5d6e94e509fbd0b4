// An average and its standard error, which a law is held to.
//
// Draws of one chain depend on each other: their error is that of our own effective sample size (core/diagnostics).
// Independent by construction, so that the plain spread is theirs, are only: chains (each has its key), and coordinates
// of a potential that couples none of them. StandardErrors.* of langevin_laws_test.cc shows that the two agree.
#pragma once

#include <cmath>
#include <vector>

#include "core/diagnostics/mcse.h"

namespace chainfleet::testing {

struct Estimate {
  double value = 0, error = 0;
};

// The estimate from independent values.
inline Estimate EstimateOf(const std::vector<double>& values) {
  double sum = 0, sum2 = 0;
  for (const double value : values) {
    sum += value;
    sum2 += value * value;
  }
  const double n = static_cast<double>(values.size()), mean = sum / n;
  return {mean, std::sqrt((sum2 / n - mean * mean) / (n - 1))};
}

// The estimate from draws of chains, in order.
inline Estimate EstimateOf(Traces traces) { return {Mean(traces.values), McseMean(traces)}; }

}  // namespace chainfleet::testing
