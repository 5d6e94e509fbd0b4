#include "worker/numerics/samplers/sampler_state.h"

#include <algorithm>

namespace chainfleet {

void SamplerState::AddRow() {
  for (ThetaArena& arena : arenas) arena.AddRow();
  numbers.emplace_back();
  derived.emplace_back();
}

void SamplerState::RemoveRow(int64_t row) {
  for (ThetaArena& arena : arenas) arena.RemoveRow(row);
  std::swap(numbers[row], numbers.back());
  numbers.pop_back();
  std::swap(derived[row], derived.back());
  derived.pop_back();
}

void SamplerState::Truncate(int64_t rows) {
  for (ThetaArena& arena : arenas) arena.Truncate(rows);
  numbers.resize(static_cast<size_t>(rows));
  derived.resize(static_cast<size_t>(rows));
}

Late<double> Evaluate(const StepInputs& inputs, const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient) {
  ++inputs.scratch->gradients;
  return inputs.potential->EvaluateLate(theta, batch, gradient);
}

const double* PriorPrecisions(const StepInputs& inputs) {
  bool any = false;
  for (const ChainStep& chain : inputs.chains) any |= chain.own.prior_precision.has_value();
  if (!any) return nullptr;
  std::vector<double>& precisions = inputs.scratch->precisions;
  precisions.resize(inputs.chains.size());
  for (size_t row = 0; row < precisions.size(); ++row) {
    precisions[row] = PriorPrecision(inputs, static_cast<int64_t>(row));
  }
  return precisions.data();
}

void TakeRows(const std::vector<ChainStep>& chains, std::initializer_list<std::pair<ThetaArena*, ThetaArena*>> arenas) {
  const bool all = std::ranges::all_of(chains, &ChainStep::active);
  for (const auto& [old, fresh] : arenas) {
    if (all) std::swap(*old, *fresh);  // a copy of a large network costs as much as a turn
    for (size_t row = 0; !all && row < chains.size(); ++row) {
      if (chains[row].active) old->CopyRow(static_cast<int64_t>(row), *fresh);
    }
  }
}

void MatchRows(const ThetaArena& like, ThetaArena* arena) {
  while (arena->rows() < like.rows()) arena->AddRow();
  while (arena->rows() > like.rows()) arena->RemoveRow(arena->rows() - 1);
}

ThetaArena& StepScratch::Arena(size_t i, const ThetaArena& like) {
  while (arenas.size() <= i) arenas.emplace_back(like.shared_layout(), like.device());
  MatchRows(like, &arenas[i]);
  return arenas[i];
}

}  // namespace chainfleet
