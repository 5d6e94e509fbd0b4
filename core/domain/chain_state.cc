#include "core/domain/chain_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace chainfleet {

bool IsFinal(ChainState state) { return state != ChainState::kPending && state != ChainState::kLeased; }

std::string ToString(ChainState state) {
  constexpr const char* kNames[] = {"PENDING", "LEASED", "SUCCEEDED", "FAILED", "DIVERGED", "CANCELLED"};
  return kNames[static_cast<int>(state)];
}

std::string ToString(JobIntent intent) {
  constexpr const char* kNames[] = {"RUN", "PAUSE", "FINISH", "CANCEL", "DELETE"};
  return kNames[static_cast<int>(intent)];
}

std::string Participle(JobIntent intent) {
  constexpr const char* kWords[] = {"resumed", "paused", "stopped early", "cancelled", "deleted"};
  return kWords[static_cast<int>(intent)];
}

std::string ToString(JobState state) {
  constexpr const char* kNames[] = {"PENDING",         "RUNNING", "PAUSED",    "SUCCEEDED",
                                    "SUCCEEDED_EARLY", "FAILED",  "CANCELLED", "DELETING"};
  return kNames[static_cast<int>(state)];
}

bool IsFinal(JobState state) {
  return state != JobState::kPending && state != JobState::kRunning && state != JobState::kPaused;
}

absl::Status CheckIntentMove(JobIntent from, JobIntent to) {
  if (to >= from || (from == JobIntent::kPause && to == JobIntent::kRun)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a job that was ", Participle(from), " cannot be ", Participle(to)));
}

JobState DeriveJobState(JobIntent intent, const std::vector<ChainState>& chains, bool enough) {
  if (intent == JobIntent::kDelete) return JobState::kDeleting;
  const auto all = [&](auto test) { return std::all_of(chains.begin(), chains.end(), test); };
  const auto any = [&](ChainState state) { return std::find(chains.begin(), chains.end(), state) != chains.end(); };
  if (all([](ChainState s) { return IsFinal(s); })) {
    if (enough || all([](ChainState s) { return s == ChainState::kSucceeded; })) return JobState::kSucceeded;
    if (intent == JobIntent::kCancel) return JobState::kCancelled;
    if (intent == JobIntent::kFinish) return JobState::kSucceededEarly;
    return any(ChainState::kFailed) || any(ChainState::kDiverged) ? JobState::kFailed : JobState::kSucceeded;
  }
  if (intent == JobIntent::kPause && !any(ChainState::kLeased)) return JobState::kPaused;
  const bool untouched = all([](ChainState s) { return s == ChainState::kPending || s == ChainState::kCancelled; });
  return untouched && intent == JobIntent::kRun ? JobState::kPending : JobState::kRunning;
}

}  // namespace chainfleet
