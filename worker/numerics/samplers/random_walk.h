// Random-walk Metropolis (Metropolis et al., "Equation of state calculations by fast computing machines", 1953) on all
// data: theta' = theta + s z, accepted with min(1, exp(-(U(theta') - U(theta)) / T)).
//
// On N(0, 1) at T = 1 the stationary acceptance is (2 / pi) atan(2 / s). With `data_size` the likelihood is raised to
// the power data_size / N: the tempered comparison for data subsampling, whose posterior is that of `data_size`
// examples.
#pragma once

#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

struct RandomWalk {
  static constexpr const char* kArenas[] = {"theta"};
  double data_size = 0;  // 0: N

  void InitRow(SamplerState* state, int64_t row) const;
  std::vector<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
