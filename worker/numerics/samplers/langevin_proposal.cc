#include "worker/numerics/samplers/langevin_proposal.h"

#include <cmath>

namespace chainfleet {

Late<PassOutcome> ProposeLangevin(const StepInputs& inputs, double likelihood_weight, ThetaArena* to, ThetaArena* from,
                                  ThetaArena* gradient) {
  return RunPass(
      Pass::kPropose, {to, from, gradient}, inputs.chains,
      [&](int64_t row, float* s) {
        const ChainStep& chain = inputs.chains[row];
        s[0] = static_cast<float>(std::sqrt(2 * chain.step_size * chain.temperature));
        s[1] = static_cast<float>(chain.step_size * likelihood_weight);
        s[2] = static_cast<float>(PriorPrecision(inputs, row) / likelihood_weight);
      },
      RngStream::kProposal);
}

void AddLangevinCost(const StepInputs& inputs, double likelihood_weight, ThetaArena* to, ThetaArena* from,
                     ThetaArena* gradient, ThetaArena* gradient_to, std::vector<double>* cost) {
  const auto scalars = [&](int64_t row, float* s) {
    s[0] = static_cast<float>(inputs.chains[row].step_size * likelihood_weight);
    s[1] = static_cast<float>(PriorPrecision(inputs, row) / likelihood_weight);
  };
  // Compute both directions from the rounded states, not from z, so that both contain the same rounding.
  const auto there = RunPass(Pass::kResidual, {to, from, gradient}, inputs.chains, scalars);
  const auto back = RunPass(Pass::kResidual, {from, to, gradient_to}, inputs.chains, scalars);
  for (size_t row = 0; row < cost->size(); ++row) {
    if (inputs.chains[row].active)
      (*cost)[row] += (back[row].sum - there[row].sum) / (4 * inputs.chains[row].step_size);
  }
}

}  // namespace chainfleet
