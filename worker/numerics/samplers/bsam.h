// Bayesian SAM (Möllenhoff & Khan, "SAM as an optimal relaxation of Bayes", ICLR 2023). Each minibatch is split into
// parts. On a part, with g the gradient of its mean loss and N' = data_multiplier N:
//
//   g  at theta + z / sqrt(N' scale);  g2 at theta + rho g / scale;  means over the parts of g2 and of sqrt(scale) |g|
//   m     <- beta1 m + (1 - beta1)(g2 + delta theta),  delta = prior_precision / N'
//   theta <- theta - h m / scale
//   scale <- beta2 scale + (1 - beta2)(mean sqrt(scale) |g| + damping + delta)
#pragma once

#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

struct Bsam {
  static constexpr const char* kArenas[] = {"theta", "momentum", "scale"};
  BsamSpec settings;

  void InitRow(SamplerState* state, int64_t row) const;
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
