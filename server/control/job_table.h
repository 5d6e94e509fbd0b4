// Jobs and chains as the store has them, and workers' last reports. Plain data: no lock, clock or I/O.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/domain/sweep_points.h"
#include "core/store/state_store/state_store.h"
#include "server/control/versions.h"
#include "server/control/views.h"

namespace chainfleet {

struct ChainEntry {
  ChainRow row;
  int64_t reported_step = 0;  // step in the lease holder's memory
  ChainStats stats;
  std::string avoided_worker;  // returned the chain unfinished; other workers are preferred
  absl::Duration not_before;   // monotonic; after a failed attempt, no grant until then
  absl::Duration waits_since;  // monotonic; start of a PENDING chain's wait for a lease
  bool in_flight = false;      // a change of the chain is being stored
  std::string refused;         // lease and reason of the last commit, if it was rejected
};

struct JobEntry {
  JobRow row;
  std::vector<ChainEntry> chains;  // by index
  int64_t num_draws = 0;           // committed, over all chains
  int64_t num_steps = 0;           // committed, over all chains
  // Number of chains by state; states without a chain have no entry.
  std::map<ChainState, int64_t> num_in_state;
  JobState state = JobState::kPending;  // derived
  int64_t total_steps = 0;              // for one chain
  int64_t estimated_bytes = 0;          // memory that one chain takes
  int64_t measured_bytes = 0;           // as a worker last reported it; 0 if none has
  int64_t draw_bytes = 0;               // estimated bytes of one draw with all its kinds
  uint64_t version = 1;                 // rises with every visible change
  std::shared_ptr<const JobView> view;  // shows `view_version`, shared by watchers; may be null
  uint64_t view_version = 0;
  // Indices of PENDING chains while the intent is RUN: chains that may share a worker, chains that may not, and chains
  // that are no longer needed.
  std::set<int32_t> pending, suspects, surplus;
  std::vector<bool> enough;    // by sweep point: enough chains succeeded, or the point is stopped
  std::set<int32_t> stopping;  // points for which a stop by the rule is being stored

  int64_t chain_bytes() const { return std::max(estimated_bytes, measured_bytes); }
  Priority priority() const { return row.plan->spec.scheduling.priority; }
  // Returns true if the chain's point has enough successes or draws.
  bool HasEnough(int32_t index) const { return enough[static_cast<size_t>(PointOf(row.plan->spec, index))]; }
};

// Sums over the jobs of a tenant that are not to be deleted.
struct TenantJobs {
  int64_t jobs = 0;
  int64_t chains = 0;       // chains of jobs that have not ended
  int64_t kept_chains = 0;  // chains of all these jobs
  __int128 draw_bytes = 0;  // estimated bytes of the committed draws; a saturated sum could not shrink again
};

// Waiting jobs by tier (highest first), tenant and age.
using JobsByAge = std::map<int64_t, const JobEntry*>;
using TenantQueue = std::map<std::string, JobsByAge>;
using WaitingJobs = std::map<Priority, TenantQueue, std::greater<Priority>>;

// Queue order: the higher tier first, then the older job.
struct QueuePlace {
  Priority priority;
  int64_t sequence;
  bool operator<(const QueuePlace& other) const {
    return priority != other.priority ? priority > other.priority : sequence < other.sequence;
  }
};
using JobQueue = std::map<QueuePlace, const JobEntry*>;

// Jobs by sequence, for each pair of a tenant and a name or request id.
using JobIndex = std::map<std::pair<std::string, std::string>, std::map<int64_t, JobEntry*>>;

// Not thread-safe. Pointers stay valid until the job is removed.
class JobTable {
 public:
  JobEntry* Add(StoredJob stored);
  void Update(const JobRow& row);
  // Adds the chain if its index is the job's next. Reads the other chains only if a success may end its sweep point.
  void Update(const ChainRow& row);
  void Remove(const std::string& id);

  const JobEntry* Find(const std::string& id) const;
  const ChainEntry* Find(const ChainId& id) const;
  JobEntry* Find(const std::string& id) { return const_cast<JobEntry*>(std::as_const(*this).Find(id)); }
  ChainEntry* Find(const ChainId& id) { return const_cast<ChainEntry*>(std::as_const(*this).Find(id)); }
  // Finds a job of `tenant`. `name` is a job id, a job's name (its newest job answers), or "@latest" (the newest job
  // that is not to be deleted answers). NOT_FOUND if there is no such job, or if the newest job of the name was
  // deleted: an older job holds another posterior, so callers must ask for it by its id.
  absl::StatusOr<JobEntry*> Resolve(const std::string& tenant, const std::string& name);
  // Returns true if `tenant` has a job with this request id that is not to be deleted.
  bool HasJobOfRequest(const std::string& tenant, const std::string& request_id) const;
  // Restricts jobs of this name older than its sequence to lookup by id.
  void Retire(const RetiredName& name);

  // Oldest first.
  const std::map<int64_t, JobEntry*>& by_age() const { return by_age_; }
  // Kept up to date by every change: reads no jobs.
  TenantJobs OfTenant(const std::string& tenant) const;
  // Jobs with pending chains, with pending suspects, with chains to retire, and with leased chains.
  const WaitingJobs& queue() const { return queue_; }
  const JobQueue& suspect_queue() const { return suspect_queue_; }
  const JobQueue& surplus_queue() const { return surplus_queue_; }
  const JobQueue& running() const { return running_; }
  bool anything_waits() const { return !queue_.empty() || !suspect_queue_.empty() || !surplus_queue_.empty(); }

 private:
  void Derive(JobEntry* job);       // reads all its chains
  void DeriveState(JobEntry* job);  // reads `num_in_state`, `enough` and the index sets
  // Adds the job to the indices of names and request ids, or takes it out of them before it changes.
  void Index(JobEntry* job, bool add);
  void Queue(JobEntry* job, bool waits);
  // Adds the job to the sums of its tenant (`sign` 1), or takes it out of them (-1) before it changes.
  void Count(const JobEntry& job, int64_t sign);

  std::map<std::string, JobEntry> jobs_;
  std::map<std::pair<std::string, std::string>, int64_t> retired_;  // sequence by tenant and name
  std::map<int64_t, JobEntry*> by_age_;
  JobIndex by_name_, by_request_;
  std::map<std::string, TenantJobs> of_tenants_;
  WaitingJobs queue_;
  JobQueue suspect_queue_, surplus_queue_, running_;
};

// Allocates nothing for the chains.
ListedJob ListedOf(const JobEntry& job, int64_t newest_version);
JobView ViewOf(const JobEntry& job, VersionNames versions);

}  // namespace chainfleet
