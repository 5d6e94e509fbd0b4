// The states of chains and jobs, and the moves of intents.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

// A chain goes from PENDING to LEASED and back until it ends. The last commit of an expired lease may end it while it
// is PENDING, as long as nobody else holds it. Final states stay. ApplyChange in the state store checks every move.
enum class ChainState { kPending = 0, kLeased = 1, kSucceeded = 2, kFailed = 3, kDiverged = 4, kCancelled = 5 };

bool IsFinal(ChainState state);
std::string ToString(ChainState state);  // "PENDING", ...

// The state that the user requested for a job. FINISH stops the job, keeps its draws and serves them. CANCEL stops the
// job and its predictions, and keeps the draws until the job is deleted. DELETE removes the job and its draws.
enum class JobIntent { kRun = 0, kPause = 1, kFinish = 2, kCancel = 3, kDelete = 4 };
std::string ToString(JobIntent intent);
std::string Participle(JobIntent intent);  // for users: a job was "paused", or cannot be "resumed"

// Derived from the intent and the chains; never stored.
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

// A job succeeds when all chains are final and every chain succeeded, or the requested number of chains (`enough`). The
// job fails when all chains are final, too few succeeded, and at least one FAILED or DIVERGED. With the intents RUN and
// PAUSE, CANCELLED chains are those that the job never samples (change::CreateJob::only_chain). They do not count.
JobState DeriveJobState(JobIntent intent, const std::vector<ChainState>& chains, bool enough = false);

}  // namespace chainfleet
