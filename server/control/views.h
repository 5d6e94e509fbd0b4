// What the Dispatcher tells about jobs, chains and workers: copies made under its lock, each consistent in itself, safe
// to keep and to hand to another thread. Nothing here follows later changes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/domain/snapshot.h"
#include "core/domain/worker_protocol.h"
#include "core/store/state_store/state_change.h"

namespace chainfleet {

// One chain: what is durable (state, num_draws, attempts, lease_epoch) beside what its worker last reported (step,
// stats), which a crash of the worker may take back.
struct ChainView {
  ChainId id;
  ChainState state = ChainState::kPending;
  int64_t step = 0;         // newest known, committed or reported by the lease holder
  int64_t total_steps = 0;  // of the job's plan
  int64_t num_draws = 0;    // committed steps, each with all its kinds
  ChainStats stats;         // as of `step`
  std::string worker;       // of the current lease, else empty
  int64_t lease_epoch = 0;  // of the newest lease, ended or not; 0 before the first
  int32_t attempts = 0;     // leases ended without progress since the last commit
  std::string reason;       // of FAILED or DIVERGED, or of the last attempt that ended early; for people
  static void Fields(auto& self, auto&& visit) {
    visit("id", self.id);
    visit("state", self.state);
    visit("step", self.step);
    visit("total_steps", self.total_steps);
    visit("num_draws", self.num_draws);
    visit("stats", self.stats);
    visit("worker", self.worker);
    visit("lease_epoch", self.lease_epoch);
    visit("attempts", self.attempts);
    visit("reason", self.reason);
  }
};

// One job as stored, with what follows from its chains and versions.
struct JobView : JobRow {
  JobState state = JobState::kPending;  // follows from intent and chains
  std::vector<ChainView> chains;        // by index
  int64_t newest_version = 0;           // 0 if none
  std::vector<std::string> aliases;     // that name one of its versions, in order
};

// What every prediction must know of its job; costs the same however many chains it has.
struct JobBrief {
  std::string id, tenant;
  std::shared_ptr<const JobPlan> plan;
  JobIntent intent = JobIntent::kRun;
  int64_t num_draws = 0;       // committed, of all chains
  int64_t newest_version = 0;  // 0 if none
};

// What the name in a prediction stands for.
struct NamedDraws {
  JobBrief job;
  std::shared_ptr<const Snapshot> version;  // of an alias; none for a job
};

// A job whose old draws may go.
struct RetainedJob {
  std::string id;
  RetentionSpec retention;
  std::vector<int64_t> num_draws;  // committed, by chain index
  std::vector<int64_t> held;       // of these so many first ones belong to versions that aliases name
};

// A worker that has synchronized with this server process and was not silent for too long since.
struct WorkerView {
  std::string id, host, device;  // several devices: their names with commas between
  int32_t chain_slots = 0;       // chains it takes in all, over its devices
  int32_t chains = 0;            // leased to it now
  absl::Duration since_sync;     // on the monotonic clock, since its last Synchronize
  bool draining = false;         // hands its chains back and takes no others
  std::string metrics_address;   // HOST:PORT of its GET /metrics; empty: none
};

// What the fleet is asked to do and who is there to do it, at one moment.
struct FleetDemand {
  int64_t waiting = 0;              // chains of running jobs that nobody holds
  absl::Duration waiting_for;       // since when there is one without a break, whichever; 0 if there is none
  absl::Duration oldest_wait;       // of the chain among them that waits longest; 0 if there is none
  std::vector<WorkerView> workers;  // by id, those that synchronized within a lease
};

// One page of something; `next_page_token` is empty on the last.
template <typename T>
struct Page {
  std::vector<T> items;
  std::string next_page_token;
};

}  // namespace chainfleet
