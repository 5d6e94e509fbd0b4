// Hamiltonian Monte Carlo (Duane et al., "Hybrid Monte Carlo", 1987; Neal, "MCMC using Hamiltonian dynamics", 2011) on
// all data: p ~ N(0, T I), then `leapfrog_steps` steps of
//
//   p <- p - eps/2 grad U(theta);  theta <- theta + eps p;  p <- p - eps/2 grad U(theta),
//
// accepted with min(1, exp(-(H' - H) / T)), H = U + |p|^2 / 2. Stable on U = k theta^2 / 2 for eps^2 k < 4.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

struct Hmc {
  static constexpr const char* kArenas[] = {"theta", "gradient"};
  int64_t leapfrog_steps = 1;

  void InitRow(SamplerState* state, int64_t row) const;
  std::vector<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
