// The density that each chain's own average gives each held-out row, for the weights of chains.
#pragma once

#include <map>
#include <vector>

#include "core/base/status.h"
#include "core/domain/evaluation.h"
#include "core/domain/prediction.h"
#include "server/predict/evaluation/label_reader.h"
#include "server/predict/serving/fan_out.h"

namespace chainfleet {

// INVALID_ARGUMENT if the weights of so many chains from so many rows would take too long: (rows + chains) x chains^2
// is bounded.
absl::Status CheckStacking(int64_t num_rows, int64_t num_chains);

// Returns the bytes held for them. REQUIRES: CheckStacking.
int64_t StackingBytes(int64_t num_rows, int64_t num_chains);

// Not thread-safe.
class ChainDensities {
 public:
  // `targets` [n] are of the sort that the job has learned.
  ChainDensities(const std::vector<ChainDraws>& chains, TargetValues targets);

  // Takes each row once, blocks in any order; the kinds of a chain count as an equal mixture.
  void Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials);

  // The weights of all chains, in chain order.
  std::vector<ChainWeight> Weights() const;

 private:
  const TargetValues targets_;
  std::vector<ChainWeight> chains_;
  std::map<ChainId, size_t> columns_;
  std::vector<double> log_density_;  // [n, K]
};

}  // namespace chainfleet
