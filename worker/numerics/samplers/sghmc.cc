#include "worker/numerics/samplers/sghmc.h"

#include <cmath>

namespace chainfleet {

Late<StepInfo> Sghmc::Step(const StepInputs& inputs, SamplerState* state) const {
  EvaluateBatches(inputs, state->theta());
  const bool is_friction = scheme == SghmcScheme::kFriction;
  const auto scalars = [&](int64_t row, float* s) {
    const double alpha = inputs.chains[row].step_size, temperature = inputs.chains[row].temperature;
    const double a = inputs.chains[row].own.friction.value_or(friction), kept = 1 - a;
    const double noise = is_friction ? 2 * a * alpha * temperature : temperature * (1 - kept * kept);
    s[0] = static_cast<float>(is_friction ? kept : std::sqrt(alpha));
    s[1] = static_cast<float>(is_friction ? alpha : kept);
    s[2] = static_cast<float>(std::sqrt(noise));
    s[3] = static_cast<float>(PriorPrecision(inputs, row));
  };
  return InfoOf(inputs, RunPass(is_friction ? Pass::kFriction : Pass::kBaoa,
                                {&state->theta(), &state->arenas[1], &inputs.scratch->gradient}, inputs.chains, scalars,
                                RngStream::kMomentum));
}

}  // namespace chainfleet
