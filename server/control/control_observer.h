// The events that the dispatcher reports, for example to metrics, which live in other folders.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "core/base/ids.h"
#include "core/domain/chain_state.h"

namespace chainfleet {

// How a lease ended without a commit: kLost: the worker's process is gone or silent; kHung: the worker reported that
// its device hangs; kOrdered: by order of the server; kGivenBack: the worker gave the chain back; kHopeless: the worker
// reported that the job is wrong.
enum class LeaseOutcome { kLost, kHung, kOrdered, kGivenBack, kHopeless };

// Returns the name in metrics and logs.
inline const char* ToString(LeaseOutcome outcome) {
  switch (outcome) {
    case LeaseOutcome::kLost:
      return "lost";
    case LeaseOutcome::kHung:
      return "hung";
    case LeaseOutcome::kOrdered:
      return "ordered";
    case LeaseOutcome::kGivenBack:
      return "given_back";
    case LeaseOutcome::kHopeless:
      return "job_wrong";
  }
  return "";
}

struct CommitFigures {
  std::string refused;    // reason of the rejection; empty if accepted
  bool replayed = false;  // the store had the same commit
  int64_t draws = 0;      // 0 unless accepted
  int64_t bytes = 0;      // bytes of its segment and resume point
  absl::Duration took;    // from the call to the store's answer
};

// Called under the dispatcher's lock. Implementations must be fast and must not call the dispatcher. This base class
// ignores every event.
class ControlObserver {
 public:
  virtual ~ControlObserver() = default;

  // A new lease is committed; the chain waited `waited` for it.
  virtual void OnGrant(absl::Duration /*waited*/) {}
  virtual void OnLeaseEnd(LeaseOutcome) {}
  // A chain became final, by its worker, the server or its user.
  virtual void OnChainEnd(ChainState) {}
  // A worker did not synchronize for a lease term and was not draining. Called once for each silence, also for workers
  // without chains.
  virtual void OnWorkerSilent() {}
  // A worker must hand the chain back, because a chain of a higher tier waits.
  virtual void OnPreempt(const ChainId&) {}
  virtual void OnCommit(const CommitFigures&) {}
};

}  // namespace chainfleet
