// The state machines of chains and jobs; one function checks every move.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

// PENDING -> LEASED -> PENDING | SUCCEEDED | FAILED | DIVERGED; PENDING -> SUCCEEDED | FAILED; any non-final ->
// CANCELLED.
enum class ChainState { kPending = 0, kLeased = 1, kSucceeded = 2, kFailed = 3, kDiverged = 4, kCancelled = 5 };

bool IsFinal(ChainState state);
std::string ToString(ChainState state);  // "PENDING", ...

// OK, or FAILED_PRECONDITION naming both states.
absl::Status CheckMove(ChainState from, ChainState to);

// The state that the user requested for a job. FINISH: stop, keep the draws and serve them. CANCEL: stop, serve no
// more, keep the draws until the job is deleted. DELETE: remove the job and its draws.
enum class JobIntent { kRun = 0, kPause = 1, kFinish = 2, kCancel = 3, kDelete = 4 };
std::string ToString(JobIntent intent);

// Derived from intent and chains, never stored.
enum class JobState {
  kPending = 0,
  kRunning = 1,
  kPaused = 2,
  kSucceeded = 3,
  kSucceededEarly = 4,
  kFailed = 5,
  kCancelled = 6,
  kDeleting = 7
};
std::string ToString(JobState state);
bool IsFinal(JobState state);

// Intents only tighten: RUN <-> PAUSE -> FINISH -> CANCEL -> DELETE. FAILED_PRECONDITION names both.
absl::Status CheckIntentMove(JobIntent from, JobIntent to);

// A job succeeds when all chains are final and every one succeeded, or as many as it asked for (`enough`). It fails
// when all are final, too few succeeded, and at least one FAILED or DIVERGED.
JobState DeriveJobState(JobIntent intent, const std::vector<ChainState>& chains, bool enough = false);

}  // namespace chainfleet
