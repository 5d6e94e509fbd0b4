// Metropolis-adjusted Langevin algorithm (Roberts & Tweedie, "Exponential convergence of Langevin distributions and
// their discrete approximations", Bernoulli 1996) on all data:
//
//   theta' = theta - alpha grad U(theta) + sqrt(2 alpha T) z, q the density of such a step,
//   accepted with min(1, exp(-(U(theta') - U(theta)) / T) q(theta | theta') / q(theta' | theta)).
//
// On N(0, 1) at T = 1 with h = alpha the stationary acceptance is (2 / pi) acos(h^2 / sqrt((h^2 + 2h)(h^2 - 2h + 4))).
#pragma once

#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

struct Mala {
  static constexpr const char* kArenas[] = {"theta", "gradient"};

  void InitRow(SamplerState* state, int64_t row) const;
  std::vector<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
