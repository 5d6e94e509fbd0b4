// Entropy-SGD (Chaudhari et al., ICLR 2017) and Entropy-SGLD (Dziugaite & Roy, ICML 2018), as the EMCMC authors run
// them. An inner chain s explores around theta. Every L steps its running mean m becomes theta; s is not reset:
//
//   s <- s - alpha (grad U_batch(s) + (s - theta) / eta) + sqrt(2 alpha T) z
//   m <- s before the first of L steps;  m <- averaging m + (1 - averaging) s after each
//   theta <- m after the last; Entropy-SGLD adds sqrt(h eta) z, h = alpha N
#pragma once

#include <vector>

#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

struct EntropySgd {
  static constexpr const char* kArenas[] = {"theta", "inner", "inner_mean"};
  double eta = 0;
  int64_t inner_steps = 1;
  double averaging = 0;
  bool langevin = false;  // Entropy-SGLD

  void InitRow(SamplerState* state, int64_t row) const {
    for (size_t i : {1, 2}) state->arenas[i].CopyRow(row, state->theta());
  }
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
