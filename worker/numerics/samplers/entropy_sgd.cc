#include "worker/numerics/samplers/entropy_sgd.h"

#include <cmath>

#include "worker/numerics/samplers/anchored_langevin.h"

namespace chainfleet {

Late<StepInfo> EntropySgd::Step(const StepInputs& inputs, SamplerState* state) const {
  ThetaArena *theta = &state->theta(), *inner = &state->arenas[1], *mean = &state->arenas[2];
  for (int64_t row = 0; row < theta->rows(); ++row) {
    if (inputs.chains[row].active && inputs.chains[row].t % inner_steps == 0) mean->CopyRow(row, *inner);
  }
  const Late<StepInfo> explored = StepTowardsAnchor(inputs, eta, inner, theta);
  RunPass(Pass::kBlend, {mean, inner}, inputs.chains, [&](int64_t, float* s) {
    s[0] = static_cast<float>(averaging);
    s[1] = static_cast<float>(1 - averaging);
  });
  const auto last = OnlyActive(inputs.chains, [&](const ChainStep& chain) { return (chain.t + 1) % inner_steps == 0; });
  const auto n = static_cast<double>(inputs.potential->num_examples());
  const auto moved = RunPass(
      Pass::kNormalAround, {theta, mean}, last,
      [&](int64_t row, float* s) {
        const double variance = last[row].step_size * n * last[row].own.eta.value_or(eta);
        s[0] = langevin ? static_cast<float>(std::sqrt(variance)) : 0;
      },
      RngStream::kThetaANoise);
  return Late<StepInfo>([explored, moved] {
    std::vector<StepInfo> info = explored;
    for (size_t row = 0; row < info.size(); ++row) info[row].finite &= moved[row].check == 0;
    return info;
  });
}

}  // namespace chainfleet
