#include "worker/numerics/samplers/full_data.h"

#include <algorithm>
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
const int64_t* Part(ChosenRows chosen, int64_t first, int64_t count, int64_t rows, std::vector<int64_t>* ids) {
  ids->resize(rows * count);
  for (int64_t row = 0; row < rows; ++row) {
    const auto to = ids->begin() + row * count;
    if (chosen.ids != nullptr) {
      std::copy_n(chosen.ids + row * chosen.count + first, count, to);
    } else {
      std::iota(to, to + count, first);
    }
  }
  return ids->data();
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

std::vector<EnergyChange> ChangeOverAllData(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to,
                                            double likelihood_weight) {
  std::vector<EnergyChange> changes = PriorChange(inputs, from, to), likelihood(from.rows());
  CompareLosses(inputs, from, to, nullptr, inputs.potential->num_examples(),
                [&](int64_t row, int64_t, int64_t count, const double* at_from, const double* at_to) {
                  for (int64_t i = 0; i < count; ++i) {
                    likelihood[row].energy += at_from[i];
                    likelihood[row].change += at_to[i] - at_from[i];
                  }
                });
  for (size_t row = 0; row < changes.size(); ++row) {
    changes[row].energy += likelihood_weight * likelihood[row].energy;
    changes[row].change += likelihood_weight * likelihood[row].change;
  }
  return changes;
}

void CompareLosses(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to, const int64_t* ids,
                   int64_t count, const SeeLosses& see) {
  const int64_t rows = from.rows(), chunk = ChunkSize(inputs, count);
  std::vector<double> at_from(rows * chunk), at_to(rows * chunk);
  for (int64_t first = 0; first < count; first += chunk) {
    const int64_t size = std::min(chunk, count - first);
    const BatchRows batch = {Part({ids, count}, first, size, rows, &inputs.scratch->ids), size};
    inputs.potential->Losses(from, batch, at_from.data());
    inputs.potential->Losses(to, batch, at_to.data());
    for (int64_t row = 0; row < rows; ++row) see(row, first, size, &at_from[row * size], &at_to[row * size]);
  }
}

std::vector<double> LossOverAllData(const StepInputs& inputs, const ThetaArena& theta) {
  return LossOver(inputs, theta, {nullptr, inputs.potential->num_examples()});
}

std::vector<double> LossOver(const StepInputs& inputs, const ThetaArena& theta, ChosenRows chosen) {
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
  return GradientOver(inputs, theta, {nullptr, inputs.potential->num_examples()}, gradient);
}

Late<double> GradientOver(const StepInputs& inputs, const ThetaArena& theta, ChosenRows chosen, ThetaArena* gradient) {
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
