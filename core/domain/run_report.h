// Measurements of a chain's gradients that check its settings: effective temperature and stability of its step size.
#pragma once

#include <cstdint>
#include <optional>

#include "core/domain/fields.h"

namespace chainfleet {

// The newest measurements of one chain; docs/explanation/sampling.md has the formulas. An absent value was not
// measured: the sampler has no such law, or the value was not finite. All are on the full-data scale of U. The struct
// holds only numbers, so that a resume point and a message carry it alike.
struct RunReport {
  int64_t step = 0;                             // steps done when the newest of them was measured
  double step_size = 0;                         // alpha, and
  double temperature = 0;                       // T, when the next three were measured
  std::optional<double> gradient_variance;      // Vbar, of the mini-batch gradient, mean over coordinates
  std::optional<double> effective_temperature;  // T + mobility Vbar / 2
  std::optional<double> noise_ulps;    // standard deviation of a step's noise over the float32 ulp of the rms of theta,
                                       // the smallest over tensors
  std::optional<double> curvature;     // largest eigenvalue of the Hessian of U
  std::optional<double> stable_below;  // the bound on alpha that follows from it
  std::optional<double> tested_step_size;  // alpha that was held against it: at the end of a cycle the restart's
  std::optional<double> log_evidence;      // log p(data) by Laplace's approximation, of a chain of that sampler

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
