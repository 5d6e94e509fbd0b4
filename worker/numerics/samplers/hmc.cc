#include "worker/numerics/samplers/hmc.h"

#include <ATen/core/Tensor.h>

#include <cmath>

#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/samplers/full_data.h"
#include "worker/numerics/samplers/known_gradient.h"
#include "worker/numerics/samplers/row_pass.h"

namespace chainfleet {
namespace {

// Draws the momentum; returns |p|^2 of every row.
std::vector<PassOutcome> DrawMomentum(const StepInputs& inputs, ThetaArena* momentum) {
  RowsView(*momentum).zero_();
  std::vector<PassOutcome> outcomes = RunPass(
      Pass::kNormalAround, {momentum, momentum}, inputs.chains,
      [&](int64_t row, float* s) { s[0] = static_cast<float>(std::sqrt(inputs.chains[row].temperature)); },
      RngStream::kMomentum);
  for (size_t row = 0; row < outcomes.size(); ++row) outcomes[row].sum *= inputs.chains[row].temperature;
  return outcomes;
}

// p <- p - part eps grad U. Returns |p|^2 after it.
Late<PassOutcome> Kick(const StepInputs& inputs, double part, ThetaArena* momentum, ThetaArena* gradient,
                       ThetaArena* theta) {
  return RunPass(Pass::kKick, {momentum, gradient, theta}, inputs.chains, [&](int64_t row, float* s) {
    s[0] = static_cast<float>(part * inputs.chains[row].step_size);
    s[1] = static_cast<float>(PriorPrecision(inputs, row));
  });
}

}  // namespace

void Hmc::InitRow(SamplerState* state, int64_t row) const { state->numbers[row].assign(kGradientKnown + 1, 0); }

std::vector<StepInfo> Hmc::Step(const StepInputs& inputs, SamplerState* state) const {
  ThetaArena *theta = &state->theta(), *gradient = &state->arenas[1];
  // Create the last arena first, because creating one may move the others.
  ThetaArena* gradient_to = &inputs.scratch->Arena(2, *theta);
  ThetaArena *momentum = &inputs.scratch->Arena(1, *theta), *proposal = &inputs.scratch->Arena(0, *theta);
  const std::vector<bool> finite = KnowGradient(inputs, state, gradient, gradient_to);
  const auto kinetic = DrawMomentum(inputs, momentum);
  Kick(inputs, 0.5, momentum, gradient, theta);
  ThetaArena* at = theta;
  Late<PassOutcome> made, kinetic_to;
  for (int64_t step = 1; step <= leapfrog_steps; ++step) {
    made = RunPass(Pass::kPerturb, {proposal, at, momentum}, inputs.chains,
                   [&](int64_t row, float* s) { s[0] = static_cast<float>(inputs.chains[row].step_size); });
    at = proposal;
    GradientOverAllData(inputs, *proposal, gradient_to);
    kinetic_to = Kick(inputs, step < leapfrog_steps ? 1 : 0.5, momentum, gradient_to, proposal);
  }
  const std::vector<EnergyChange> changes = ChangeOverAllData(inputs, *proposal, 1, state);
  std::vector<Verdict> verdicts(changes.size());
  for (size_t row = 0; row < verdicts.size(); ++row) {
    const double cost = changes[row].change + (kinetic_to[row].sum - kinetic[row].sum) / 2;
    verdicts[row] = {changes[row].energy, finite[row], made[row].check == 0 && Accepts(inputs.chains[row], cost)};
  }
  std::vector<StepInfo> info = Settle(inputs, verdicts, {{theta, proposal}, {gradient, gradient_to}}, state);
  KeepLosses(inputs, info, state);
  return info;
}

}  // namespace chainfleet
