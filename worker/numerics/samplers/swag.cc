#include "worker/numerics/samplers/swag.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "worker/numerics/samplers/anchored_langevin.h"

namespace chainfleet {
namespace {

enum : size_t { kTheta, kMomentum, kDraw, kMean, kMeanLow, kSpread, kSpreadLow, kDeviations };

}  // namespace

std::vector<std::string> Swag::Arenas() const {
  std::vector<std::string> names = {"theta", "momentum", "draw", "mean", "mean_low", "spread", "spread_low"};
  for (int64_t k = 0; k < max_rank; ++k) names.push_back("deviation" + std::to_string(k));
  return descent.Arenas(std::move(names));
}

Late<StepInfo> Swag::Step(const StepInputs& inputs, SamplerState* state) const {
  const int64_t last = inputs.plan->training_steps;
  const auto training = OnlyActive(inputs.chains, [&](const ChainStep& chain) { return chain.t < last; });
  const auto sampling = OnlyActive(inputs.chains, [&](const ChainStep& chain) { return chain.t >= last; });
  std::vector<StepInfo> of_sampling(inputs.chains.size());
  // Do this before other rows move: an evaluation may run out of memory, and then no row has moved.
  if (Any(sampling)) {
    Sample(inputs, sampling, state);
    const StepInputs some = ForChains(inputs, sampling);
    EvaluateBatches(some, state->arenas[kDraw]);
    for (size_t row = 0; row < of_sampling.size(); ++row) {
      of_sampling[row].energy = inputs.scratch->energy[row];
      of_sampling[row].finite = std::isfinite(of_sampling[row].energy);
    }
  }
  if (!Any(training)) return of_sampling;
  const StepInputs some = ForChains(inputs, training);
  EvaluateBatches(some, state->theta());
  const Late<StepInfo> trained = descent.Update(some, state);
  TakeSnapshots(some, state);
  if (!Any(sampling)) return trained;
  std::vector<StepInfo> info = trained;
  for (size_t row = 0; row < info.size(); ++row) {
    if (sampling[row].active) info[row] = of_sampling[row];
  }
  return info;
}

void Swag::TakeSnapshots(const StepInputs& inputs, SamplerState* state) const {
  const int64_t epoch = inputs.plan->steps_per_epoch;
  const auto due = OnlyActive(inputs.chains, [&](const ChainStep& chain) {
    return (chain.t + 1) % epoch == 0 && (chain.t + 1) / epoch >= start_epoch;
  });
  if (Any(due)) Average(due, state);
}

void Swag::TakeSnapshot(int64_t row, SamplerState* state) const {
  std::vector<ChainStep> due(static_cast<size_t>(state->theta().rows()));
  for (ChainStep& chain : due) chain.active = false;
  due[static_cast<size_t>(row)].active = true;
  Average(due, state);
}

void Swag::Average(const std::vector<ChainStep>& due, SamplerState* state) const {
  auto& arenas = state->arenas;
  RunPass(Pass::kAverage, {&arenas[kMean], &arenas[kMeanLow], &arenas[kSpread], &arenas[kSpreadLow], &arenas[kTheta]},
          due, [&](int64_t row, float* s) { s[0] = static_cast<float>(1 / ++state->numbers[row][0]); });
  for (int64_t k = 0; k < max_rank; ++k) {
    std::vector<ChainStep> of_column = due;
    for (size_t row = 0; row < due.size(); ++row) {
      of_column[row].active = due[row].active && static_cast<int64_t>(state->numbers[row][0] - 1) % max_rank == k;
    }
    if (!Any(of_column)) continue;
    RunPass(Pass::kPerturb, {&arenas[kDeviations + k], &arenas[kTheta], &arenas[kMean]}, of_column,
            [](int64_t, float* s) { s[0] = -1; });
  }
}

void Swag::Sample(const StepInputs& inputs, const std::vector<ChainStep>& sampling, SamplerState* state) const {
  auto& arenas = state->arenas;
  RunPass(Pass::kDiagonalDraw, {&arenas[kDraw], &arenas[kMean], &arenas[kSpread]}, sampling,
          [&](int64_t, float* s) { s[0] = static_cast<float>(std::sqrt(scale)); });
  for (int64_t k = 0; k < max_rank; ++k) {
    RunPass(Pass::kBlend, {&arenas[kDraw], &arenas[kDeviations + k]}, sampling, [&](int64_t row, float* s) {
      const bool is_filled = static_cast<double>(k) < state->numbers[row][0];
      const double z =
          NormalDouble(inputs.chains[row].key, RngStream::kProposal, inputs.chains[row].t, static_cast<uint32_t>(k));
      s[0] = 1;
      s[1] = is_filled ? static_cast<float>(std::sqrt(scale / static_cast<double>(max_rank - 1)) * z) : 0;
    });
  }
}

}  // namespace chainfleet
