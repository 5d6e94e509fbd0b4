#include "worker/numerics/samplers/gradient_uncertainty.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/check.h"

namespace chainfleet {

std::vector<StepInfo> GradientUncertainty::Step(const StepInputs& inputs, SamplerState* state) const {
  StepScratch& scratch = *inputs.scratch;
  const int64_t n = inputs.batches->batch_size(), rows = state->theta().rows();
  const BatchRows batch = FillBatches(inputs, state->theta());
  std::vector<double> energy(rows), norms(rows * n);
  const bool known =
      inputs.potential->EvaluateWithNorms(state->theta(), batch, &scratch.gradient, energy.data(), norms.data());
  scratch.energy = std::move(energy);
  ++scratch.gradients;
  CHAINFLEET_CHECK(known) << "a potential without per-example norms was given to gradient_uncertainty";
  const auto squares =
      RunPass(Pass::kDot, {&scratch.gradient, &scratch.gradient}, inputs.chains, [](int64_t, float*) {});
  const double scale = static_cast<double>(inputs.potential->num_examples()) / static_cast<double>(n);
  std::vector<ChainStep> chains = inputs.chains;
  std::vector<double> uncertainties(rows);
  std::vector<bool> kept(rows);
  for (int64_t row = 0; row < rows; ++row) {
    if (!chains[row].active) continue;
    const double of_examples = std::accumulate(norms.begin() + row * n, norms.begin() + (row + 1) * n, 0.0);
    const double uncertainty = squares[row].sum / (scale * scale) - of_examples;
    // Examples with zero gradients neither agree nor disagree.
    const double divisor = settings.scale_free && of_examples != 0 ? of_examples : 1;
    uncertainties[row] = uncertainty / divisor;
    kept[row] = Decide(*inputs.plan, chains[row].t, uncertainties[row], &state->numbers[row]);
    if (kept[row]) {
      state->arenas[1].CopyRow(row, state->theta());
    } else {
      chains[row].temperature = 0;
    }
  }
  std::vector<StepInfo> info =
      UpdateLangevin({inputs.potential, inputs.batches, inputs.plan, chains, &scratch}, {}, &state->theta(), nullptr);
  for (int64_t row = 0; row < rows; ++row) {
    info[row].kept = kept[row];
    info[row].gradient_uncertainty = uncertainties[row];
  }
  return info;
}

bool GradientUncertainty::Decide(const StepPlan& plan, int64_t t, double value, std::vector<double>* numbers) const {
  if (t < plan.burn_in_steps) {
    const int64_t every = (plan.burn_in_steps + kMaxValues - 1) / kMaxValues;
    // Skip norms that overflowed: NaN has no order, and sorting it is undefined.
    if (!settings.threshold && t % every == 0 && !std::isnan(value)) numbers->push_back(value);
    return false;
  }
  if (numbers->front() == 0) {
    std::vector<double> values(numbers->begin() + 1, numbers->end());
    std::sort(values.begin(), values.end());
    const auto at = static_cast<size_t>(settings.quantile * static_cast<double>(values.size()));
    // Without recorded values, no value is below the threshold.
    *numbers = {1, values.empty() ? -std::numeric_limits<double>::infinity() : values[std::min(at, values.size() - 1)]};
  }
  return value < numbers->back();
}

}  // namespace chainfleet
