// The coordinator's one lock: jobs, chains, leases and the fleet, over a store that is the truth.
//
// Every public method starts with Enter(now): lock, advance time, expire leases. Changes are validated against the
// tables and appended to the StateWriter. They take effect (tables change, `done` runs) only after their commit.
// Nothing blocks and no I/O happens under the lock.
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
#include "server/control/event_log.h"
#include "server/control/fair_share.h"
#include "server/control/fleet_summary.h"
#include "server/control/reply.h"
#include "server/control/state_writer.h"
#include "server/control/tenant_limits.h"
#include "server/control/trace_table.h"
#include "server/control/versions.h"
#include "server/control/views.h"

namespace chainfleet {

// A process of a worker, named as in its Synchronize calls.
struct WorkerIdentity {
  std::string worker, incarnation;
};

// Stores findings about an ended job for later views (change::KeepFindings). `done` runs when the findings are stored,
// or when storing failed, which is logged.
using KeepFindings = std::function<void(std::map<std::string, std::string> parts, std::function<void()> done)>;

struct DispatcherOptions {
  absl::Duration lease_ttl = limits::kLeaseTtl;
  absl::Duration sync_interval = limits::kSyncInterval;
  absl::Duration lease_grace = limits::kLeaseGrace;
  absl::Duration longest_call = limits::kPredictDeadline;  // longest read of draws; a deleted job's draws stay so long
  // The key of job ids: fresh random bits in production, a constant in tests.
  RngKey id_key;
  ShareSettings shares;
  TenantLimits tenant_limits;
  // Returns the free bytes of the store of draws; may block. Unset or nullopt means unknown.
  std::function<std::optional<int64_t>()> free_bytes;
  ControlObserver* observer = nullptr;  // outlives the dispatcher; null: no observer
  TraceTable* traces = nullptr;         // outlives the dispatcher; forgets chains that end as FAILED or DIVERGED
  // Checks who committed the resume point of a chain that is granted, before the grant is sent; a chain that fails
  // waits for the store. Runs without a lock: signatures take time. If unset, nothing is checked.
  std::function<absl::Status(const std::string& tenant, const ApplyResult& granted)> check_resume_point = {};
  // Runs when a job has ended, before its watchers are told. Runs inside a call of the dispatcher, so the function must
  // not call the dispatcher.
  std::function<void(const JobView& job, KeepFindings keep)> on_job_end;
  // Runs once when another coordinator took the store over or a commit's outcome is unknown: the process must end and
  // reload. If unset, the process ends at once.
  std::function<void(const absl::Status&)> on_store_lost;
};

// The parts that the Dispatcher uses. All of them outlive the Dispatcher.
struct DispatcherParts {
  const Clock* clock = nullptr;
  Executor* executor = nullptr;
  const StateStore* store = nullptr;
  StateWriter* writer = nullptr;  // closed before the Dispatcher is destroyed
  Catalog* catalog = nullptr;
  Versions* versions = nullptr;
  std::shared_ptr<EventLog> events;
};

// Thread-safe.
class Dispatcher {
 public:
  // `state` is the state that the store loaded just now; every LEASED chain gets one full term.
  Dispatcher(const DispatcherParts& parts, StoredState state, DispatcherOptions options);
  ~Dispatcher();

  // Jobs. Only ResolveJob, ResolveDraws, CreateJob and ListJobs are scoped to a tenant; other methods take the job id
  // that ResolveJob returns. `name`: a job id, a name (the newest job with the name), or "@latest", among the jobs of
  // `tenant`. NOT_FOUND names the requested job, in all methods. change::CreateJob says what `only_chain` does.
  absl::StatusOr<std::string> ResolveJob(const std::string& tenant, const std::string& name);
  void CreateJob(const std::string& tenant, const JobSpec& spec, const std::string& request_id, bool validate_only,
                 Reply<JobView> done, std::optional<int32_t> only_chain = std::nullopt);
  void SetIntent(const std::string& job, JobIntent intent, Reply<JobView> done);
  // change::ScaleJob has the contract.
  void ScaleJob(const std::string& job, int32_t chains, Reply<JobView> done);
  // Checks the job's stop rule against new diagnostics of its traces. Points with enough draws end as change::StopPoint
  // says.
  void TakeDiagnoses(const std::string& job, const std::vector<PointDiagnosis>& points);
  absl::StatusOr<JobView> GetJob(const std::string& job);
  absl::StatusOr<JobBrief> GetBrief(const std::string& job);
  // Returns the states by chain index.
  absl::StatusOr<std::vector<ChainState>> GetChainStates(const std::string& job);
  // Summarises all jobs, with at most `most_running` of the running chains.
  FleetSummary Summary(size_t most_running);
  // Lists jobs, newest first. INVALID_ARGUMENT for a page token of other arguments.
  struct JobFilter {
    std::optional<std::string> tenant;
    std::optional<JobState> state;
  };
  absl::StatusOr<Page<ListedJob>> ListJobs(const JobFilter& filter, int32_t page_size, const std::string& page_token);
  // Runs `changed` once when the job's version counter passes `seen` or the job is gone; at once if so already.
  struct Watched {
    std::shared_ptr<const JobView> job;  // shared by all watchers of this version
    uint64_t version = 0;
  };
  // Identifies a watch for Unwatch.
  struct WatchTicket {
    std::string job;
    uint64_t number = 0;
  };
  WatchTicket WatchJob(const std::string& job, uint64_t seen, Reply<Watched> changed);
  // Ends a watch: `changed` gets CANCELLED unless it ran already.
  void Unwatch(const WatchTicket& ticket);

  // Returns the draws that `name` refers to now: a name that ResolveJob accepts, or an alias.
  absl::StatusOr<NamedDraws> ResolveDraws(const std::string& tenant, const std::string& name);
  // Lists jobs whose retention deletes draws, by age; Versions fills in `held`.
  std::vector<RetainedJob> RetainedJobs();
  // Reserves the tenant's room for an upload of `content`, such as "model NAME", that counts as `contents`
  // (ContentsOf). RESOURCE_EXHAUSTED / TENANT_LIMIT: the tenant has no room for it.
  absl::StatusOr<std::shared_ptr<TenantReservation>> ReserveRoom(const std::string& tenant, const std::string& content,
                                                                 int64_t bytes, int64_t contents);
  // Returns how much of each limit of the options the tenant uses.
  std::vector<LimitUsage> TenantUsage(const std::string& tenant);

  // Workers. The server holds the call of a worker that is idle or has free slots for up to half a sync interval while
  // there is no news. A next_sync_in of 0 asks for the next call at once.
  void Synchronize(const SynchronizeRequest& request, Reply<SynchronizeReply> done);
  // Errors: INVALID_ARGUMENT, then the errors of change::CommitProgress, then the errors of
  // CheckContent. A chain of a tenant that `caller` does not admit is answered as a chain that does not exist.
  void CommitProgress(const ProgressCommit& commit, Reply<CommitReply> done, const Admission& caller = {});
  // `tenant`: counts its chains only.
  std::vector<WorkerView> ListWorkers(const std::optional<std::string>& tenant = std::nullopt);
  // Drains a worker. It hands chains back as it calls; after `limit` the leases of the rest end and count no attempt.
  // If called again, the later limit counts. `tenant`: only a worker that takes the chains of this tenant alone.
  // NOT_FOUND; INVALID_ARGUMENT for a negative limit.
  absl::StatusOr<WorkerView> DrainWorker(const std::string& worker, absl::Duration limit = kDrainLimit,
                                         const std::optional<std::string>& tenant = std::nullopt);
  // Returns the demand for workers, for scalers and for metrics of the queue.
  FleetDemand Demand();

 private:
  friend class Sessions;
  struct Core;
  struct Impl;
  class Entered;
  const std::shared_ptr<Impl> impl_;  // shared with the tasks on the executor
};

}  // namespace chainfleet
