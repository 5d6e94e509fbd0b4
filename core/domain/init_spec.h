// The start of a job's chains, if the default does not apply: random for networks, zero for analytic potentials.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/domain/fields.h"

namespace chainfleet {

// theta_a always starts at theta, and momentum at 0.
struct InitSpec {
  // Values in layout order: one number for every coordinate, [D] for every chain, or [K, D] row by row, where chain i
  // starts at row i mod K. Empty: the model's default start.
  std::vector<double> theta;
  double perturb = 0;  // standard deviation of the normal noise that each chain adds to its start
  bool any() const { return !theta.empty() || perturb > 0; }
  static void Fields(auto& self, auto&& visit) {
    visit("theta", self.theta);
    visit("perturb", self.perturb, AtLeast(0));
  }
  bool operator==(const InitSpec&) const = default;
};

// Returns a violation at init.theta unless `theta` holds whole points of a model with `num_parameters` parameters.
std::vector<FieldViolation> ValidateForSize(const InitSpec& init, int64_t num_parameters);

}  // namespace chainfleet
