#include "worker/numerics/samplers/full_data.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "worker/numerics/samplers/row_pass.h"

namespace chainfleet {
namespace {

// Number of examples processed at a time. The job's minibatch is known to fit in memory; a smaller one only costs time.
int64_t ChunkSize(const StepInputs& inputs, int64_t count) {
  return std::min(count, std::max<int64_t>(128, inputs.batches->batch_size()));
}

// The chosen examples first .. first+count-1 of each of `rows`, [rows, count].
const int64_t* Part(const ChosenRows& chosen, int64_t first, int64_t count, int64_t rows, std::vector<int64_t>* ids) {
  ids->resize(rows * count);
  for (int64_t row = 0; row < rows; ++row) {
    const auto to = ids->begin() + row * count;
    if (!chosen.ids.empty()) {
      std::copy_n(chosen.ids[row] + first, count, to);
    } else {
      std::iota(to, to + count, first);
    }
  }
  return ids->data();
}

// A row's value in SamplerState::derived: losses of all examples.
struct KnownLosses {
  std::vector<double> at_theta;     // empty: not known
  std::vector<double> at_proposal;  // incomplete after an error
};

KnownLosses& KnownLossesOf(const std::shared_ptr<void>& derived) { return *static_cast<KnownLosses*>(derived.get()); }

// Computes the losses at `at` into at_proposal of each active row.
void TakeLosses(const StepInputs& inputs, const ThetaArena& at, SamplerState* state) {
  const int64_t rows = at.rows(), all = inputs.potential->num_examples(), chunk = ChunkSize(inputs, all);
  std::vector<double> part(rows * chunk);
  for (int64_t first = 0; first < all; first += chunk) {
    const int64_t size = std::min(chunk, all - first);
    inputs.potential->Losses(at, {Part({{}, all}, first, size, rows, &inputs.scratch->ids), size}, part.data());
    for (int64_t row = 0; row < rows; ++row) {
      if (!inputs.chains[row].active) continue;
      std::vector<double>& losses = KnownLossesOf(state->derived[row]).at_proposal;
      losses.resize(all);
      std::copy_n(&part[row * size], size, losses.begin() + first);
    }
  }
}

// Computes the losses at theta of all active rows if one of them lacks its own.
void KnowLosses(const StepInputs& inputs, SamplerState* state) {
  bool known = true;
  for (size_t row = 0; row < inputs.chains.size(); ++row) {
    std::shared_ptr<void>& derived = state->derived[row];
    if (!inputs.chains[row].active) continue;
    if (derived == nullptr) derived = std::make_shared<KnownLosses>();
    known &= !KnownLossesOf(derived).at_theta.empty();
  }
  if (known) return;
  TakeLosses(inputs, state->theta(), state);
  for (size_t row = 0; row < inputs.chains.size(); ++row) {
    if (!inputs.chains[row].active) continue;
    KnownLosses& losses = KnownLossesOf(state->derived[row]);
    losses.at_theta.swap(losses.at_proposal);
  }
}

}  // namespace

std::vector<EnergyChange> PriorChange(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to) {
  const double* precisions = PriorPrecisions(inputs);
  std::vector<double> there(from.rows()), then(from.rows());
  inputs.potential->LogPrior(from, precisions, there.data());
  inputs.potential->LogPrior(to, precisions, then.data());
  std::vector<EnergyChange> changes(from.rows());
  for (size_t row = 0; row < changes.size(); ++row) changes[row] = {-there[row], there[row] - then[row]};
  return changes;
}

std::vector<EnergyChange> ChangeOverAllData(const StepInputs& inputs, const ThetaArena& to, double likelihood_weight,
                                            SamplerState* state) {
  KnowLosses(inputs, state);
  TakeLosses(inputs, to, state);
  std::vector<EnergyChange> changes = PriorChange(inputs, state->theta(), to);
  for (size_t row = 0; row < changes.size(); ++row) {
    if (!inputs.chains[row].active) continue;
    const KnownLosses& losses = KnownLossesOf(state->derived[row]);
    EnergyChange likelihood;
    for (size_t i = 0; i < losses.at_theta.size(); ++i) {
      likelihood.energy += losses.at_theta[i];
      likelihood.change += losses.at_proposal[i] - losses.at_theta[i];
    }
    changes[row].energy += likelihood_weight * likelihood.energy;
    changes[row].change += likelihood_weight * likelihood.change;
  }
  return changes;
}

void KeepLosses(const StepInputs& inputs, const std::vector<StepInfo>& info, SamplerState* state) {
  for (size_t row = 0; row < info.size(); ++row) {
    if (!inputs.chains[row].active || !info[row].moved) continue;
    KnownLosses& losses = KnownLossesOf(state->derived[row]);
    losses.at_theta.swap(losses.at_proposal);
  }
}

void CompareLosses(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to, const int64_t* ids,
                   int64_t count, const SeeLosses& see) {
  const int64_t rows = from.rows(), chunk = ChunkSize(inputs, count);
  ChosenRows chosen = {{}, count};
  for (int64_t row = 0; row < rows; ++row) chosen.ids.push_back(ids + row * count);
  std::vector<double> at_from(rows * chunk), at_to(rows * chunk);
  for (int64_t first = 0; first < count; first += chunk) {
    const int64_t size = std::min(chunk, count - first);
    const BatchRows batch = {Part(chosen, first, size, rows, &inputs.scratch->ids), size};
    inputs.potential->Losses(from, batch, at_from.data());
    inputs.potential->Losses(to, batch, at_to.data());
    for (int64_t row = 0; row < rows; ++row) see(row, first, size, &at_from[row * size], &at_to[row * size]);
  }
}

std::vector<double> LossOverAllData(const StepInputs& inputs, const ThetaArena& theta) {
  return LossOver(inputs, theta, {{}, inputs.potential->num_examples()});
}

std::vector<double> LossOver(const StepInputs& inputs, const ThetaArena& theta, const ChosenRows& chosen) {
  const int64_t rows = theta.rows(), chunk = ChunkSize(inputs, chosen.count);
  std::vector<double> losses(rows * chunk), sums(rows);
  for (int64_t first = 0; first < chosen.count; first += chunk) {
    const int64_t size = std::min(chunk, chosen.count - first);
    inputs.potential->Losses(theta, {Part(chosen, first, size, rows, &inputs.scratch->ids), size}, losses.data());
    for (int64_t row = 0; row < rows; ++row) {
      sums[row] = std::accumulate(&losses[row * size], &losses[row * size] + size, sums[row]);
    }
  }
  return sums;
}

Late<double> GradientOverAllData(const StepInputs& inputs, const ThetaArena& theta, ThetaArena* gradient) {
  return GradientOver(inputs, theta, {{}, inputs.potential->num_examples()}, gradient);
}

Late<double> GradientOver(const StepInputs& inputs, const ThetaArena& theta, const ChosenRows& chosen,
                          ThetaArena* gradient) {
  StepScratch& scratch = *inputs.scratch;
  const int64_t chunk = ChunkSize(inputs, chosen.count);
  const bool at_once = chunk == chosen.count;
  ThetaArena* part = at_once ? gradient : &scratch.gradient;
  if (!at_once) MatchRows(theta, part);
  std::vector<std::pair<double, Late<double>>> energies;  // with their weights
  for (int64_t first = 0; first < chosen.count; first += chunk) {
    const int64_t size = std::min(chunk, chosen.count - first);
    const BatchRows batch = {Part(chosen, first, size, theta.rows(), &scratch.ids), size, nullptr,
                             PriorPrecisions(inputs)};
    const double weight = static_cast<double>(size) / static_cast<double>(chosen.count);
    energies.emplace_back(weight, Evaluate(inputs, theta, batch, part));
    if (at_once) break;
    RunPass(Pass::kAccumulate, {gradient, part}, inputs.chains, [&](int64_t, float* s) {
      s[0] = static_cast<float>(weight);
      s[1] = first == 0 ? 0.0f : 1.0f;
    });
  }
  return Late<double>([energies = std::move(energies)] {
    std::vector<double> sums(energies.front().second.get().size());
    for (const auto& [weight, energy] : energies) {
      for (size_t row = 0; row < sums.size(); ++row) sums[row] += weight * energy[row];
    }
    return sums;
  });
}

}  // namespace chainfleet
