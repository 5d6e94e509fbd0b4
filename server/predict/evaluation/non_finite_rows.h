// The rows of a data set of which some draw says NaN or infinity: an evaluation with such rows has no scores.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "server/predict/serving/fan_out.h"

namespace chainfleet {

// Whether what `partial` says of its row `row` is finite. A density of 0 at the target is, though its logarithm is not.
bool IsFinite(const PartialPrediction& partial, size_t row);

// Of one pass over a data set. Not thread-safe. Memory: the chains, no rows.
class NonFiniteRows {
 public:
  // Blocks in any order, each row once; `partials` as FanOut delivers them.
  void Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials);

  // OK if there was none. Else FAILED_PRECONDITION / NOT_FINITE, the same whatever block came first: how many of
  // `num_rows`, the first of them, whose draws they are, and what to leave out. `rows`: what they are rows of.
  absl::Status Check(const std::string& rows, int64_t num_rows) const;

 private:
  int64_t count_ = 0, first_ = 0;
  std::set<std::pair<ChainId, DrawKind>> sources_;
};

}  // namespace chainfleet
