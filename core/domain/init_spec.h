// The start of a job's chains, if it is not the default: random for networks, zero for analytic potentials.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/domain/fields.h"

namespace chainfleet {

// theta_a always starts at theta, and momentum at 0.
struct InitSpec {
  // In layout order: one number for every coordinate, [D] for every chain, or [K, D] row by row: chain i starts at row
  // i mod K. Empty: the model's own start.
  std::vector<double> theta;
  double perturb = 0;  // standard deviation of the normal noise that each chain adds to its start
  bool any() const { return !theta.empty() || perturb > 0; }
  static void Fields(auto& self, auto&& visit) {
    visit("theta", self.theta);
    visit("perturb", self.perturb, AtLeast(0));
  }
  bool operator==(const InitSpec&) const = default;
};

// `theta` is no number of whole points of a model with `num_parameters` parameters; path init.theta.
std::vector<FieldViolation> ValidateForSize(const InitSpec& init, int64_t num_parameters);

}  // namespace chainfleet
