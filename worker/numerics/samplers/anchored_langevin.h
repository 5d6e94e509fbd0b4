// A Langevin step of an arena towards a fixed anchor.
#pragma once

#include <algorithm>
#include <vector>

#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

// x <- x - alpha (grad U_batch(x) + (x - anchor) / eta) + sqrt(2 alpha T) z, with the gradient evaluated here. Each
// info's anchor_distance is |x - anchor| before the step.
Late<StepInfo> StepTowardsAnchor(const StepInputs& inputs, double eta, ThetaArena* x, ThetaArena* anchor);

// Copies `chains` and leaves only the rows active for which `due` is true.
template <typename Due>
std::vector<ChainStep> OnlyActive(const std::vector<ChainStep>& chains, const Due& due) {
  std::vector<ChainStep> some = chains;
  for (ChainStep& chain : some) chain.active = chain.active && due(chain);
  return some;
}

// The inputs of the same step for other rows; `chains` must outlive the result.
inline StepInputs ForChains(const StepInputs& inputs, const std::vector<ChainStep>& chains) {
  return {inputs.potential, inputs.batches, inputs.plan, chains, inputs.scratch};
}

inline bool Any(const std::vector<ChainStep>& chains) { return std::ranges::any_of(chains, &ChainStep::active); }

}  // namespace chainfleet
