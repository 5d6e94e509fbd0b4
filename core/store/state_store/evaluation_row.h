// Evaluations as stored: what was asked and what came of it, in the words of whoever runs them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "core/base/status.h"

namespace chainfleet {

// Stored by number.
enum class EvaluationState { kRunning = 1, kSucceeded = 2, kFailed = 3, kCancelled = 4 };

struct EvaluationRow {
  int64_t sequence = 0;  // by creation, never reused
  std::string id, job, tenant;
  std::string request_id;  // the tenant's own; empty: none
  std::string request;     // opaque bytes
  int64_t version = 0;     // of the job, that it rests on: kept, with its draws, while it runs; 0: of none
  EvaluationState state = EvaluationState::kRunning;
  std::string result;  // opaque bytes, once it has succeeded; lists leave them out
  absl::Status error;  // once it has failed: code, reason and message
  absl::Time created_at;
  std::optional<absl::Time> finished_at;
};

// Newest first; fields that are set must match.
struct EvaluationQuery {
  std::optional<std::string> tenant;
  std::string job, request_id;  // empty: any
  std::optional<EvaluationState> state;
  int64_t before = 0;  // only sequences below it; 0: all
  int32_t limit = 50;
};

}  // namespace chainfleet
