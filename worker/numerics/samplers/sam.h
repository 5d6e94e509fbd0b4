// Sharpness-aware minimisation (Foret et al., ICLR 2021): with g the gradient of the mean loss,
//
//   eps = rho g / (|g| + 1e-12) over all tensors;  heavy-ball step from theta with the gradient at theta + eps
#pragma once

#include <vector>

#include "worker/numerics/samplers/sgd.h"

namespace chainfleet {

struct Sam {
  static constexpr const char* kArenas[] = {"theta", "momentum"};
  double rho = 0;
  double momentum = 0;

  void InitRow(SamplerState*, int64_t) const {}
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
