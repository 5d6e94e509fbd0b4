// What the dispatcher tells whoever keeps figures about it (metrics are a matter of other folders).
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "core/base/ids.h"
#include "core/domain/chain_state.h"

namespace chainfleet {

// How a lease ended that no commit ended: the worker's process is gone or silent; the worker said that its device
// hangs; the server ordered it; the worker gave the chain back; or it said that the job is wrong.
enum class LeaseOutcome { kLost, kHung, kOrdered, kGivenBack, kHopeless };

// As metrics and logs have it.
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
  std::string refused;    // reason of the refusal, empty for an accepted one
  bool replayed = false;  // it was there already
  int64_t draws = 0;      // of an accepted one
  int64_t bytes = 0;      // of its segment and resume point
  absl::Duration took;    // from the call to the store's answer
};

// Called under the dispatcher's lock: quick, a few counters, and never back into the dispatcher. This one listens to
// nothing.
class ControlObserver {
 public:
  virtual ~ControlObserver() = default;

  // A new lease is committed; the chain had wanted it for so long.
  virtual void OnGrant(absl::Duration /*waited*/) {}
  virtual void OnLeaseEnd(LeaseOutcome) {}
  // A chain is final now, whoever ended it: its worker, the server or its user.
  virtual void OnChainEnd(ChainState) {}
  // A worker has not synchronised for a lease term and did not drain; once of each silence, with chains or without.
  virtual void OnWorkerSilent() {}
  // A worker is told to hand the chain back, for one of a higher tier.
  virtual void OnPreempt(const ChainId&) {}
  virtual void OnCommit(const CommitFigures&) {}
};

}  // namespace chainfleet
