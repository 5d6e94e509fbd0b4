// The Dispatcher's views of jobs, chains and workers: copies made under its lock, each consistent in itself. They may
// be kept and passed to other threads, and do not follow later changes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/domain/version.h"
#include "core/domain/worker_protocol.h"
#include "core/store/state_store/state_change.h"

namespace chainfleet {

// One chain: its durable state (state, num_draws, attempts, lease_epoch) and its worker's last report (step, stats),
// which a crash of the worker may undo.
struct ChainView {
  ChainId id;
  ChainState state = ChainState::kPending;
  int64_t step = 0;         // newest known, committed or reported by the lease holder
  int64_t total_steps = 0;  // from the job's plan
  int64_t num_draws = 0;    // committed steps, each with all its kinds
  ChainStats stats;         // as of `step`
  std::string worker;       // holder of the current lease, else empty
  int64_t lease_epoch = 0;  // epoch of the newest lease, ended or not; 0 before the first
  int32_t attempts = 0;     // leases that ended without progress since the last commit
  std::string reason;       // for people: why the chain is FAILED or DIVERGED, or why its last attempt ended early
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

// One job of a list: as stored, with sums over its chains.
struct ListedJob : JobRow {
  JobState state = JobState::kPending;  // follows from intent and chains
  int64_t newest_version = 0;           // 0 if none
  int64_t num_draws = 0;                // committed
  int64_t step = 0, total_steps = 0;    // newest known
  bool has_usable_draws = false;        // some chain that is neither FAILED nor DIVERGED has committed draws
};

// One job with its chains.
struct JobView : ListedJob {
  std::vector<ChainView> chains;     // by index
  std::vector<std::string> aliases;  // aliases of its versions, sorted
};

// The part of a job that every prediction needs. Its cost does not depend on the number of chains.
struct JobBrief {
  std::string id, tenant;
  std::shared_ptr<const JobPlan> plan;
  JobIntent intent = JobIntent::kRun;
  int64_t num_draws = 0;       // committed, over all chains
  int64_t newest_version = 0;  // 0 if none
};

// The draws that the name in a prediction refers to.
struct NamedDraws {
  JobBrief job;
  std::shared_ptr<const Version> version;  // version of the alias; null for a job
};

// A job with a retention.
struct RetainedJob {
  std::string id;
  RetentionSpec retention;
  std::vector<int64_t> num_draws;  // committed, by chain index
  std::vector<int64_t> held;       // number of first draws that belong to versions with aliases, by chain index
};

// A worker that has synchronized with this server process and has not been silent for too long since.
struct WorkerView {
  std::string id, host, device;  // device: names of the devices, comma-separated
  int32_t chain_slots = 0;       // over all its devices
  int32_t chains = 0;            // leased to it now
  absl::Duration since_sync;     // monotonic, since its last Synchronize
  bool draining = false;         // hands its chains back and takes no others
  std::string metrics_address;   // HOST:PORT of its GET /metrics; may be empty
};

// The demand for workers, and the workers there are, at one moment.
struct FleetDemand {
  int64_t waiting = 0;              // chains of running jobs without a lease
  absl::Duration waiting_for;       // time for which some chain has waited without interruption; 0 if none waits
  absl::Duration oldest_wait;       // wait of the chain that has waited longest; 0 if none waits
  std::vector<WorkerView> workers;  // by id; those that synchronized within a lease term
};

// One page of a list; `next_page_token` is empty on the last.
template <typename T>
struct Page {
  std::vector<T> items;
  std::string next_page_token;
};

}  // namespace chainfleet
