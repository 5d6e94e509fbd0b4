// Entropy-MCMC, Gibbs-like form (Li & Zhang, ICLR 2024, appendix): before every L-th step theta_a ~ N(theta, eta T I)
// exactly, then steps of theta alone,
//
//   theta <- theta - alpha (grad U_batch(theta) + (theta - theta_a) / eta) + sqrt(2 alpha T) z
//
// On U = k x^2 / 2 with L = 1 and g = 1 / eta: var theta = T (1 + alpha g / 2) / (k (1 - alpha k / 2)), var theta_a =
// that + eta T.
#pragma once

#include <vector>

#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

struct EmcmcGibbs {
  static constexpr const char* kArenas[] = {"theta", "theta_a"};
  double eta = 0;
  int64_t inner_steps = 1;  // L

  void InitRow(SamplerState* state, int64_t row) const { state->arenas[1].CopyRow(row, state->theta()); }
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
