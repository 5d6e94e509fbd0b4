#include "worker/numerics/samplers/emcmc_gibbs.h"

#include <cmath>

#include "worker/numerics/samplers/anchored_langevin.h"

namespace chainfleet {

Late<StepInfo> EmcmcGibbs::Step(const StepInputs& inputs, SamplerState* state) const {
  const auto due = OnlyActive(inputs.chains, [&](const ChainStep& chain) { return chain.t % inner_steps == 0; });
  RunPass(
      Pass::kNormalAround, {&state->arenas[1], &state->theta()}, due,
      [&](int64_t row, float* s) {
        s[0] = static_cast<float>(std::sqrt(due[row].own.eta.value_or(eta) * due[row].temperature));
      },
      RngStream::kThetaANoise);
  return StepTowardsAnchor(inputs, eta, &state->theta(), &state->arenas[1]);
}

}  // namespace chainfleet
