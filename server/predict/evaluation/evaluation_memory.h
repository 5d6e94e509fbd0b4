// The server memory that the rows of an evaluation take, computed before it starts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/byte_budget.h"
#include "core/base/status.h"
#include "core/domain/targets.h"

namespace chainfleet {

// Number of rows of each data set that is scored.
struct EvaluatedRows {
  int64_t labelled = 0;
  int64_t ood = 0;
  int64_t held_out = 0;   // for fitting temperatures
  bool changed = false;   // the labelled rows are also scored under corruptions
  bool weighted = false;  // also averages with weights of the chains
};

// The most bytes held at once: targets and averages of each set and of one corrupted set, and the copies that scores
// sort. Saturates instead of overflowing.
int64_t EvaluationBytes(const EvaluatedRows& rows, size_t num_kinds, const Targets& targets);

// INVALID_ARGUMENT if `bytes` are more than all evaluations may have. The error names both and the number of parts that
// would fit.
absl::Status CheckEvaluationBytes(int64_t bytes, int64_t max_bytes);

// Adds `bytes` to `share`. RESOURCE_EXHAUSTED / QUEUE_FULL if other evaluations hold too much now.
absl::Status HoldEvaluationBytes(int64_t bytes, ByteShare* share);

}  // namespace chainfleet
