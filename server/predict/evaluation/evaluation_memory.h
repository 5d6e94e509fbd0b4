// What the rows of an evaluation take of the server's memory, known before the first of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/byte_budget.h"
#include "core/base/status.h"

namespace chainfleet {

// Rows of each set that is scored.
struct EvaluatedRows {
  int64_t labelled = 0;
  int64_t ood = 0;
  int64_t held_out = 0;  // that temperatures are fitted to
  bool changed = false;  // the labelled ones also as corruptions change them
};

// The most bytes that are held at once: targets and averages of each set and of one changed set, and what scores copy
// and sort of them. `num_classes` 0: of numbers. Never overflows.
int64_t EvaluationBytes(const EvaluatedRows& rows, size_t num_kinds, int64_t num_classes);

// INVALID_ARGUMENT, with both and in how many parts it would do, if `bytes` are more than all evaluations may have.
absl::Status CheckEvaluationBytes(int64_t bytes, int64_t max_bytes);

// Puts `bytes` into `share`. RESOURCE_EXHAUSTED / QUEUE_FULL if other evaluations hold too many now.
absl::Status HoldEvaluationBytes(int64_t bytes, ByteShare* share);

}  // namespace chainfleet
