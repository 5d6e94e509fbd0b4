// Stochastic-gradient Langevin dynamics (Welling & Teh, "Bayesian learning via stochastic gradient Langevin dynamics",
// ICML 2011):
//
//   theta <- theta - alpha grad U_batch(theta) + sqrt(2 alpha T) z
//
// If the minibatch gradient of U has a known variance V, the noise-corrected form injects only 2 alpha T - alpha^2 V.
// On U = k x^2 / 2 the stationary variance is T / (k (1 - alpha k / 2)), stable for alpha k < 2.
#pragma once

#include <vector>

#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

struct Sgld {
  static constexpr const char* kArenas[] = {"theta"};
  double gradient_noise = 0;  // V; 0: plain

  void InitRow(SamplerState*, int64_t) const {}
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const {
    EvaluateBatches(inputs, state->theta());
    return UpdateLangevin(inputs, {.gradient_noise = gradient_noise}, &state->theta(), nullptr);
  }
};

}  // namespace chainfleet
