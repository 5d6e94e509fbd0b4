#include "worker/numerics/samplers/full_data.h"

#include <algorithm>
#include <numeric>

#include "worker/numerics/samplers/row_pass.h"

namespace chainfleet {
namespace {

// Number of examples processed at a time. The job's minibatch is known to fit in memory; a smaller one only costs time.
int64_t ChunkSize(const StepInputs& inputs, int64_t count) {
  return std::min(count, std::max<int64_t>(128, inputs.batches->batch_size()));
}

// Examples first .. first+count-1 for each of `rows`, [rows, count].
const int64_t* RangeForEachRow(int64_t first, int64_t count, int64_t rows, std::vector<int64_t>* ids) {
  ids->resize(rows * count);
  for (int64_t row = 0; row < rows; ++row)
    std::iota(ids->begin() + row * count, ids->begin() + (row + 1) * count, first);
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
  std::vector<int64_t>& chosen = inputs.scratch->ids;
  for (int64_t first = 0; first < count; first += chunk) {
    const int64_t size = std::min(chunk, count - first);
    RangeForEachRow(first, size, rows, &chosen);
    if (ids != nullptr) {
      for (int64_t row = 0; row < rows; ++row) std::copy_n(ids + row * count + first, size, &chosen[row * size]);
    }
    inputs.potential->Losses(from, {chosen.data(), size}, at_from.data());
    inputs.potential->Losses(to, {chosen.data(), size}, at_to.data());
    for (int64_t row = 0; row < rows; ++row) see(row, first, size, &at_from[row * size], &at_to[row * size]);
  }
}

std::vector<double> LossOverAllData(const StepInputs& inputs, const ThetaArena& theta) {
  const int64_t rows = theta.rows(), all = inputs.potential->num_examples(), chunk = ChunkSize(inputs, all);
  std::vector<double> losses(rows * chunk), sums(rows);
  for (int64_t first = 0; first < all; first += chunk) {
    const int64_t size = std::min(chunk, all - first);
    inputs.potential->Losses(theta, {RangeForEachRow(first, size, rows, &inputs.scratch->ids), size}, losses.data());
    for (int64_t row = 0; row < rows; ++row) {
      sums[row] = std::accumulate(&losses[row * size], &losses[row * size] + size, sums[row]);
    }
  }
  return sums;
}

void GradientOverAllData(const StepInputs& inputs, const ThetaArena& theta, ThetaArena* gradient) {
  StepScratch& scratch = *inputs.scratch;
  const int64_t all = inputs.potential->num_examples(), chunk = ChunkSize(inputs, all);
  MatchRows(theta, &scratch.gradient);
  for (int64_t first = 0; first < all; first += chunk) {
    const int64_t size = std::min(chunk, all - first);
    const BatchRows batch = {RangeForEachRow(first, size, theta.rows(), &scratch.ids), size, nullptr,
                             PriorPrecisions(inputs)};
    Evaluate(inputs, theta, batch, &scratch.gradient);
    RunPass(Pass::kAccumulate, {gradient, &scratch.gradient}, inputs.chains, [&](int64_t, float* s) {
      s[0] = static_cast<float>(static_cast<double>(size) / static_cast<double>(all));
      s[1] = first == 0 ? 0.0f : 1.0f;
    });
  }
}

}  // namespace chainfleet
