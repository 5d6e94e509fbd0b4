#include "worker/numerics/samplers/anchored_langevin.h"

#include <cmath>

namespace chainfleet {

Late<StepInfo> StepTowardsAnchor(const StepInputs& inputs, double eta, ThetaArena* x, ThetaArena* anchor) {
  EvaluateBatches(inputs, *x);
  const auto outcomes = RunPass(Pass::kAnchoredLangevin, {x, anchor, &inputs.scratch->gradient}, inputs.chains,
                                [&](int64_t row, float* s) {
                                  const ChainStep& chain = inputs.chains[row];
                                  s[0] = static_cast<float>(chain.step_size);
                                  s[1] = static_cast<float>(std::sqrt(2 * chain.step_size * chain.temperature));
                                  s[2] = static_cast<float>(PriorPrecision(inputs, row));
                                  s[3] = static_cast<float>(1 / chain.own.eta.value_or(eta));
                                });
  return Late<StepInfo>([outcomes, moved = InfoOf(inputs, outcomes)] {
    std::vector<StepInfo> info = moved;
    for (size_t row = 0; row < info.size(); ++row) info[row].anchor_distance = std::sqrt(outcomes[row].sum);
    return info;
  });
}

}  // namespace chainfleet
