// Stochastic-gradient Hamiltonian Monte Carlo (Chen, Fox & Guestrin, ICML 2014) with friction a, in two schemes whose
// stationary distributions are known; g is the minibatch gradient of U at theta.
//
//   friction   v <- (1 - a) v - alpha g + sqrt(2 a alpha T) z;  theta <- theta + v
//              on U = k x^2 / 2: variance T / (k (1 - alpha k / (2 (2 - a)))); with gradient noise of variance V:
//              (T + alpha V / (2 a)) / (k (1 - alpha k / (2 (2 - a))))
//   baoa       epsilon^2 = alpha, c = 1 - a: p <- p - epsilon g; theta <- theta + epsilon p / 2;
//              p <- c p + sqrt(T (1 - c^2)) z; theta <- theta + epsilon p / 2
//              variance exactly T / k for epsilon^2 k < 4
#pragma once

#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

struct Sghmc {
  static constexpr const char* kArenas[] = {"theta", "momentum"};
  double friction = 0;
  SghmcScheme scheme = SghmcScheme::kFriction;

  void InitRow(SamplerState*, int64_t) const {}
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
