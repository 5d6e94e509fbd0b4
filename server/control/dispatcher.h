// The coordinator's one lock: jobs, chains, leases and the fleet, over a store that is the truth.
//
// Every public method begins with Enter(now): lock, advance time, expire leases. Changes are validated against the
// tables, appended to the StateWriter, and take effect (tables change, `done` runs) only after their commit. Nothing
// blocks and no I/O happens under the lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/rng_key.h"
#include "core/base/status.h"
#include "core/domain/worker_protocol.h"
#include "core/store/state_store/state_store.h"
#include "server/control/catalog.h"
#include "server/control/control_observer.h"
#include "server/control/fair_share.h"
#include "server/control/fleet_summary.h"
#include "server/control/reply.h"
#include "server/control/state_writer.h"
#include "server/control/tenant_limits.h"
#include "server/control/trace_table.h"
#include "server/control/versions.h"
#include "server/control/views.h"

namespace chainfleet {

// A process of a worker, as its Synchronize calls name it.
struct WorkerIdentity {
  std::string worker, incarnation;
};

// Keeps what an ended job leaves to be looked at (change::KeepFindings); `done` runs when it is stored, or cannot be,
// which is logged.
using KeepFindings = std::function<void(std::map<std::string, std::string> parts, std::function<void()> done)>;

struct DispatcherOptions {
  absl::Duration lease_ttl = limits::kLeaseTtl;
  absl::Duration sync_interval = limits::kSyncInterval;
  absl::Duration lease_grace = limits::kLeaseGrace;
  absl::Duration longest_call = limits::kPredictDeadline;  // that reads draws: so long those of a deleted job stay
  // Job ids are drawn from it: fresh random bits in production, a constant in tests.
  RngKey id_key;
  ShareSettings shares;
  TenantLimits tenant_limits;
  // Bytes that draws may still take where they are stored; it may block. Unset or nullopt: nobody knows.
  std::function<std::optional<int64_t>()> free_bytes;
  ControlObserver* observer = nullptr;  // outlives the dispatcher; null: nobody
  TraceTable* traces = nullptr;         // likewise; forgets chains that end as FAILED or DIVERGED
  // Runs when a job has ended, before its watchers hear of it, inside a call of the dispatcher: it must make none
  // itself.
  std::function<void(const JobView& job, KeepFindings keep)> on_job_end;
  // Runs once when another coordinator took the store over or a commit's outcome is unknown: the process must end and
  // reload. Unset: it ends at once.
  std::function<void(const absl::Status&)> on_store_lost;
};

// What the Dispatcher works with. All of it outlives the Dispatcher.
struct DispatcherParts {
  const Clock* clock = nullptr;
  Executor* executor = nullptr;
  const StateStore* store = nullptr;
  StateWriter* writer = nullptr;  // closed before the Dispatcher ends
  Catalog* catalog = nullptr;
  Versions* versions = nullptr;
};

// Thread-safe.
class Dispatcher {
 public:
  // `state` is what the store loaded just now; every LEASED chain gets one full term.
  Dispatcher(const DispatcherParts& parts, StoredState state, DispatcherOptions options);
  ~Dispatcher();

  // Jobs. Who calls is told apart here and in CreateJob and ListJobs; all other calls take the id that this gives.
  // `name`: a job id, a name (its newest job), or "@latest", among the jobs of `tenant`. NOT_FOUND names what
  // was asked, here and below.
  absl::StatusOr<std::string> ResolveJob(const std::string& tenant, const std::string& name);
  void CreateJob(const std::string& tenant, const JobSpec& spec, const std::string& request_id, bool validate_only,
                 Reply<JobView> done);
  void SetIntent(const std::string& job, JobIntent intent, Reply<JobView> done);
  // As change::ScaleJob says.
  void ScaleJob(const std::string& job, int32_t chains, Reply<JobView> done);
  // What the traces of a job say now: its stop rule is looked at. Points that have enough end, as
  // change::StopPoint says.
  void TakeDiagnoses(const std::string& job, const std::vector<PointDiagnosis>& points);
  absl::StatusOr<JobView> GetJob(const std::string& job);
  absl::StatusOr<JobBrief> GetBrief(const std::string& job);
  // By index.
  absl::StatusOr<std::vector<ChainState>> GetChainStates(const std::string& job);
  // Of all jobs, with at most `most_running` of the chains that run.
  FleetSummary Summary(size_t most_running);
  // Newest first. INVALID_ARGUMENT for a page token of other arguments.
  struct JobFilter {
    std::optional<std::string> tenant;
    std::optional<JobState> state;
  };
  absl::StatusOr<Page<JobView>> ListJobs(const JobFilter& filter, int32_t page_size, const std::string& page_token);
  // Runs `changed` once when the job's version counter passes `seen` or it is gone; at once if it has already.
  struct Watched {
    JobView job;
    uint64_t version = 0;
  };
  // The ticket is for Unwatch.
  struct WatchTicket {
    std::string job;
    uint64_t number = 0;
  };
  WatchTicket WatchJob(const std::string& job, uint64_t seen, Reply<Watched> changed);
  // Nobody listens any more: `changed`, unless it ran already, gets CANCELLED.
  void Unwatch(const WatchTicket& ticket);

  // `name` as ResolveJob takes it, or an alias: what it means at this moment.
  absl::StatusOr<NamedDraws> ResolveDraws(const std::string& tenant, const std::string& name);
  // Jobs whose retention lets draws go, by age; `held` is left to Versions.
  std::vector<RetainedJob> RetainedJobs();
  // RESOURCE_EXHAUSTED / TENANT_LIMIT: the tenant has no room for so many bytes more.
  absl::Status CheckTenantRoom(const std::string& tenant, int64_t bytes);

  // Workers. The call of a worker that is idle or has room for more chains is held up to half a sync
  // interval while there is nothing to say; a next_sync_in of zero asks for the next at once.
  void Synchronize(const SynchronizeRequest& request, Reply<SynchronizeReply> done);
  // `record` is what the segment's record says of its making; its chain and segment are those of `commit`. Errors:
  // INVALID_ARGUMENT, those of change::CommitProgress and, unless it is refused by these, of CheckContent.
  void CommitProgress(const ProgressCommit& commit, Reply<CommitReply> done);
  std::vector<WorkerView> ListWorkers();
  // Its chains come back as its calls do, and those that it still holds after `limit` are taken from it; they count no
  // attempt. Called again, the later limit counts. NOT_FOUND; INVALID_ARGUMENT for a negative limit.
  absl::StatusOr<WorkerView> DrainWorker(const std::string& worker, absl::Duration limit = kDrainLimit);
  // What a scaler and the metrics of the queue go by.
  FleetDemand Demand();

 private:
  friend class Sessions;
  struct Core;
  struct Impl;
  class Entered;
  const std::shared_ptr<Impl> impl_;  // shared with the tasks on the executor
};

}  // namespace chainfleet
