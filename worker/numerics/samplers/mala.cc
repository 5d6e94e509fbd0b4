#include "worker/numerics/samplers/mala.h"

#include "worker/numerics/samplers/full_data.h"
#include "worker/numerics/samplers/known_gradient.h"
#include "worker/numerics/samplers/langevin_proposal.h"

namespace chainfleet {

void Mala::InitRow(SamplerState* state, int64_t row) const { state->numbers[row].assign(kGradientKnown + 1, 0); }

std::vector<StepInfo> Mala::Step(const StepInputs& inputs, SamplerState* state) const {
  ThetaArena *theta = &state->theta(), *gradient = &state->arenas[1];
  // Create the last arena first, because creating one may move the others.
  ThetaArena *gradient_to = &inputs.scratch->Arena(1, *theta), *proposal = &inputs.scratch->Arena(0, *theta);
  const std::vector<bool> finite = KnowGradient(inputs, state, gradient, gradient_to);
  const auto made = ProposeLangevin(inputs, 1, proposal, theta, gradient);
  GradientOverAllData(inputs, *proposal, gradient_to);
  const std::vector<EnergyChange> changes = ChangeOverAllData(inputs, *proposal, 1, state);
  std::vector<double> cost(changes.size());
  for (size_t row = 0; row < cost.size(); ++row) cost[row] = changes[row].change;
  AddLangevinCost(inputs, 1, proposal, theta, gradient, gradient_to, &cost);
  std::vector<Verdict> verdicts(cost.size());
  for (size_t row = 0; row < verdicts.size(); ++row) {
    verdicts[row] = {changes[row].energy, finite[row], made[row].check == 0 && Accepts(inputs.chains[row], cost[row])};
  }
  std::vector<StepInfo> info = Settle(inputs, verdicts, {{theta, proposal}, {gradient, gradient_to}}, state);
  KeepLosses(inputs, info, state);
  return info;
}

}  // namespace chainfleet
