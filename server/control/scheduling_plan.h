// The scheduling decision: a pure function of the coordinator's tables and the time. It changes nothing, writes no log
// and reads no clock; Dispatcher::Core::RunPolicy applies its plan.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/control/fair_share.h"
#include "server/control/fleet.h"
#include "server/control/job_table.h"
#include "server/control/lease_table.h"
#include "server/control/scheduling_policy.h"
#include "server/control/solo_turns.h"

namespace chainfleet {

// Every table that a decision reads.
struct SchedulingTables {
  JobTable jobs;
  LeaseTable leases;
  Fleet fleet;
  FairShare shares;
  SoloTurns turns;
};

struct SchedulingPlan {
  struct Retirement {
    ChainId chain;
    std::string why;
    bool operator==(const Retirement&) const = default;
  };

  SoloTurns turns;                             // the state of the turns after the decision
  std::vector<std::string> cleared;            // workers that got a turn: they hand their other chains back
  std::vector<Retirement> retirements;         // chains that their jobs no longer need
  std::vector<Assignment> grants;              // in the order of their writes; turns that begin come first
  std::set<ChainId> yields;                    // every lease that gives way to a higher tier
  std::optional<absl::Duration> next_attempt;  // the earliest not_before of the chains that have to wait for it
  std::optional<absl::Duration> again;         // the next decision is due then even if nothing changes
};

// `now`: of the monotonic clock. A worker that was silent for longer than `lease_ttl` gets no chain.
SchedulingPlan Decide(const SchedulingTables& tables, absl::Duration now, absl::Duration lease_ttl);

}  // namespace chainfleet
