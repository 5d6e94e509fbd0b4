// Finds the rows for which a draw returns NaN or infinity. An evaluation with such rows has no scores.
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

// True if the sums of `partial` for row `row` are finite. A density of 0 at the target counts as finite, although its
// logarithm is not.
bool IsFinite(const PartialPrediction& partial, size_t row);

// For one pass over a data set. Memory grows with the chains, not with the rows. Not thread-safe.
class NonFiniteRows {
 public:
  // Takes each row once, blocks in any order; `partials` as FanOut delivers them.
  void Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials);

  // OK if all rows are finite. Else FAILED_PRECONDITION / NOT_FINITE, with the same text in whatever order blocks came:
  // how many of `num_rows` rows are affected, the first of them, the chains and kinds of the draws, and what to leave
  // out. `rows` names the data set.
  absl::Status Check(const std::string& rows, int64_t num_rows) const;

 private:
  int64_t count_ = 0, first_ = 0;
  std::set<std::pair<ChainId, DrawKind>> sources_;
};

}  // namespace chainfleet
