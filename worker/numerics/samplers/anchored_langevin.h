// A Langevin step of some arena towards an anchor that stays where it is.
#pragma once

#include <vector>

#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

// x <- x - alpha (grad U_batch(x) + (x - anchor) / eta) + sqrt(2 alpha T) z, gradient included; each info's
// anchor_distance is |x - anchor| before the step.
Late<StepInfo> StepTowardsAnchor(const StepInputs& inputs, double eta, ThetaArena* x, ThetaArena* anchor);

// The chains of a step with only those active that `due` says.
template <typename Due>
std::vector<ChainStep> OnlyActive(const std::vector<ChainStep>& chains, const Due& due) {
  std::vector<ChainStep> some = chains;
  for (ChainStep& chain : some) chain.active = chain.active && due(chain);
  return some;
}

}  // namespace chainfleet
