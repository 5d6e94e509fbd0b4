// Entropy-MCMC, joint form (Li & Zhang, "Entropy-MCMC: sampling from flat basins with ease", ICLR 2024): Langevin
// dynamics on U(theta) + |theta - theta_a|^2 / (2 eta), both updates from the old values, g = 1 / eta:
//
//   theta   <- theta   - alpha (grad U_batch(theta) + g (theta - theta_a)) + sqrt(2 alpha T) z1
//   theta_a <- theta_a - alpha g (theta_a - theta)                         + sqrt(2 alpha T) z2
//
// The anchor's force is analytic, so a step needs one gradient, as SGLD does. theta_a starts at theta. On U = k x^2 /
// 2, with A = [[k + g, -g], [-g, g]], the stationary covariance is T (A - alpha A^2 / 2)^-1, stable for alpha < 4 / (k
// + 2 g + sqrt(k^2 + 4 g^2)). With `anchor_decay`, as in the official code, the Gaussian prior also acts on theta_a:
// the precision of theta is then k + g lambda / (g + lambda).
#pragma once

#include <vector>

#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

struct Emcmc {
  static constexpr const char* kArenas[] = {"theta", "theta_a"};
  double eta = 0;
  bool anchor_decay = false;

  void InitRow(SamplerState* state, int64_t row) const { state->arenas[1].CopyRow(row, state->theta()); }
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const {
    EvaluateBatches(inputs, state->theta());
    return UpdateLangevin(inputs, {.eta = eta, .anchor_decay = anchor_decay}, &state->theta(), &state->arenas[1]);
  }
};

}  // namespace chainfleet
