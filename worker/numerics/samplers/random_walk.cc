#include "worker/numerics/samplers/random_walk.h"

#include "worker/numerics/samplers/full_data.h"
#include "worker/numerics/samplers/metropolis.h"
#include "worker/numerics/samplers/row_pass.h"

namespace chainfleet {

void RandomWalk::InitRow(SamplerState* state, int64_t row) const { state->numbers[row].assign(kFirstOwnNumber, 0); }

std::vector<StepInfo> RandomWalk::Step(const StepInputs& inputs, SamplerState* state) const {
  ThetaArena& theta = state->theta();
  ThetaArena& proposal = inputs.scratch->Arena(0, theta);
  const auto made = RunPass(
      Pass::kNormalAround, {&proposal, &theta}, inputs.chains,
      [&](int64_t row, float* s) { s[0] = static_cast<float>(inputs.chains[row].step_size); }, RngStream::kProposal);
  const double weight = data_size == 0 ? 1 : data_size / static_cast<double>(inputs.potential->num_examples());
  const std::vector<EnergyChange> changes = ChangeOverAllData(inputs, proposal, weight, state);
  std::vector<Verdict> verdicts(changes.size());
  for (size_t row = 0; row < verdicts.size(); ++row) {
    verdicts[row].energy = changes[row].energy;
    verdicts[row].accept = made[row].check == 0 && Accepts(inputs.chains[row], changes[row].change);
  }
  std::vector<StepInfo> info = Settle(inputs, verdicts, {{&theta, &proposal}}, state);
  KeepLosses(inputs, info, state);
  return info;
}

}  // namespace chainfleet
