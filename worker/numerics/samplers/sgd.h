// Stochastic gradient descent with heavy-ball momentum b, as PyTorch's:
//
//   v <- b v + grad U_batch(theta);  theta <- theta - alpha v
//
// A baseline: no noise, whatever the temperature. Independent chains are a deep ensemble (Lakshminarayanan et al.,
// NeurIPS 2017).
#pragma once

#include <vector>

#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

// The update above with the gradient of the scratch.
Late<StepInfo> UpdateHeavyBall(const StepInputs& inputs, double momentum, ThetaArena* theta, ThetaArena* v);

struct Sgd {
  static constexpr const char* kArenas[] = {"theta", "momentum"};
  double momentum = 0;

  void InitRow(SamplerState*, int64_t) const {}
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const {
    EvaluateBatches(inputs, state->theta());
    return UpdateHeavyBall(inputs, momentum, &state->theta(), &state->arenas[1]);
  }
};

}  // namespace chainfleet
