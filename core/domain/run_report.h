// Measurements of a chain's gradients that check its settings: effective temperature and stability of its step size.
#pragma once

#include <cstdint>
#include <optional>

#include "core/domain/fields.h"

namespace chainfleet {

// The newest measurements of one chain; docs/explanation/sampling.md has the formulas. A value is absent if the sampler
// has no such law or the value was not finite. All values are on the full-data scale of U. The struct holds only
// numbers, so that resume points and messages carry the same fields.
struct RunReport {
  int64_t step = 0;                             // steps done at the newest measurement
  double step_size = 0;                         // alpha at the measurement of the next three values
  double temperature = 0;                       // T at the measurement of the next three values
  std::optional<double> gradient_variance;      // Vbar: variance of the mini-batch gradient, mean over coordinates
  std::optional<double> effective_temperature;  // T + heat Vbar, see tracing/linear_response.h
  std::optional<double> noise_ulps;    // standard deviation of a step's noise over the float32 ulp of the rms of theta,
                                       // the smallest over tensors
  std::optional<double> curvature;     // largest eigenvalue of the Hessian of U
  std::optional<double> stable_below;  // upper bound on alpha that follows from the curvature
  std::optional<double> tested_step_size;  // alpha compared with stable_below; at a cycle's end, the restart's
  std::optional<double> log_evidence;      // log p(data) by Laplace's approximation; laplace chains only

  static void Fields(auto& self, auto&& visit) {
    visit("step", self.step);
    visit("step_size", self.step_size);
    visit("temperature", self.temperature);
    visit("gradient_variance", self.gradient_variance);
    visit("effective_temperature", self.effective_temperature);
    visit("noise_ulps", self.noise_ulps);
    visit("curvature", self.curvature);
    visit("stable_below", self.stable_below);
    visit("tested_step_size", self.tested_step_size);
    visit("log_evidence", self.log_evidence);
  }
  bool operator==(const RunReport&) const = default;
};

}  // namespace chainfleet
