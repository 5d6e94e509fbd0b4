// Evaluations as stored. Request and result are opaque to the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "core/base/status.h"

namespace chainfleet {

// The numbers are stored.
enum class EvaluationState { kRunning = 1, kSucceeded = 2, kFailed = 3, kCancelled = 4 };

struct EvaluationRow {
  int64_t sequence = 0;  // in order of creation, never reused
  std::string id, job, tenant;
  std::string request_id;  // chosen by the tenant; may be empty
  std::string request;     // opaque text
  // Job version that the evaluation reads; it is kept, with its draws, while the evaluation runs. 0 means none.
  int64_t version = 0;
  EvaluationState state = EvaluationState::kRunning;
  std::string result;  // opaque text, set on success; lists leave them out
  absl::Status error;  // set on failure: code, reason and message
  absl::Time created_at;
  std::optional<absl::Time> finished_at;
  static void Fields(auto& self, auto&& visit) {
    visit("sequence", self.sequence);
    visit("id", self.id);
    visit("job", self.job);
    visit("tenant", self.tenant);
    visit("request_id", self.request_id);
    visit("request", self.request);
    visit("version", self.version);
    visit("state", self.state);
    visit("error", self.error);
    visit("created", self.created_at);
    visit("finished", self.finished_at);
    visit("result", self.result);
  }
};

// Lists newest first. Fields that are set must match.
struct EvaluationQuery {
  std::optional<std::string> tenant;
  std::string job, request_id;  // empty: any
  std::optional<EvaluationState> state;
  int64_t before = 0;  // only sequences below this; 0: all
  int32_t limit = 50;
};

}  // namespace chainfleet
