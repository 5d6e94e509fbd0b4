// Internals of the Dispatcher: its tables, the guard of every entry, and the functions that several dispatcher*.cc
// share. Only for dispatcher*.cc.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "server/control/dispatcher.h"
#include "server/control/scheduling_plan.h"
#include "server/control/state_writer.h"

namespace chainfleet {

// A worker's call that waits for its answer by AnswerIfDue.
struct HeldCall {
  Reply<SynchronizeReply> done;
  std::vector<HeldChain> chains;
  absl::Duration since;
  bool draining = false;  // as the worker reported
  bool foreign = false;   // its chains belong to another store
  bool pressing = false;  // a renewed lease may be near its end at the worker
};

// The tables and shared functions. Only Entered gives access to them, with the lock held.
struct Dispatcher::Core : SchedulingTables {
  using Then = std::function<void(Core&, const ApplyResult&)>;
  using Look = std::function<void(const ApplyResult&)>;

  Core(const DispatcherParts& parts, StoredState state, const DispatcherOptions& options, EventLog* log);

  // Starts the tasks that need the shared Impl around the core.
  void Start(const std::weak_ptr<Impl>& impl);

  // Sends a reply after the lock is released.
  void Say(std::function<void()> reply) { outbox.push_back(std::move(reply)); }
  template <typename T>
  void Say(const Reply<T>& done, absl::StatusOr<T> answer) {
    Say([done, answer = std::move(answer)]() mutable { done(std::move(answer)); });
  }

  // Adds an event about the lease of `row`, or about a job, and logs it after the lock is released (dispatcher_log.cc).
  void Note(LogLevel level, const std::string& message, const ChainRow& row, std::vector<LogField> more = {});
  void NoteJob(LogLevel level, const std::string& message, const std::string& job, std::vector<LogField> more = {});
  // Notes a rejected commit; `by` has its chain, epoch and worker.
  void NoteCommit(const ChainRow& by, const absl::Status& status);
  void NoteSilentWorkers();

  // Appends a change; `then` runs under the lock, after the tables have the rows of the result. `look`, if set, runs
  // before, without the lock.
  void Change(StateChange change, Then then, Look look = nullptr);
  // Appends a change of a chain. REQUIRES: no change of the chain is in flight.
  void ChangeChain(ChainEntry* chain, StateChange change, Then then, Look look = nullptr);
  bool IsInFlight(const ChainId& id) {
    const ChainEntry* chain = jobs.Find(id);
    return chain != nullptr && chain->in_flight;
  }
  void Absorb(const ApplyResult& result);
  void AbsorbJob(const JobRow& row);
  void OnChainEnd(const ChainRow& row);
  void TellOfEndedJobs();
  void Bump(JobEntry* job);  // TellOfChangedJobs tells its watchers
  void TellOfChangedJobs();
  void WaitFromNow(JobEntry* job);  // its pending chains wait from now on
  void TellWatchers(const std::string& job, const absl::StatusOr<Watched>& watched);
  void StirHolders(const JobEntry& job);  // the holders of its chains may get orders

  // Time.
  void Advance();
  void Settle();
  void ArmTimer();
  void SchedulePurge(const std::string& job);
  void Purge(const change::PurgeJob& page);

  JobEntry* AddJob(StoredJob stored);
  void ReportProgress(const JobEntry& job);  // to the versions
  JobView ViewOf(const JobEntry& job) const { return chainfleet::ViewOf(job, versions->NamesOf(job.row.id)); }
  // Returns the view of the job's version, made once for all watchers. REQUIRES: nothing visible of the job changes
  // later in the same entry.
  std::shared_ptr<const JobView> SharedViewOf(JobEntry* job);
  JobBrief BriefOf(const JobEntry& job) const;

  // Extent of the draws (dispatcher_extent.cc). `traces`: the diagnoses that are known now.
  void StopWhatHasEnough(JobEntry* job, const std::vector<PointDiagnosis>& traces);
  void StopPoint(JobEntry* job, int32_t point, const std::string& why);

  // Leases (dispatcher_leases.cc).
  void EndLeases();
  void EndLease(ChainEntry* chain, int64_t epoch, LeaseEnd ending);
  static LeaseEnd LostWith(const Lease& lease, std::string reason);
  void OnAttemptEnded(const ChainId& id, const ChainRow& before, const LeaseEnd& ending);
  void DelayNextAttempt(ChainEntry* chain);
  void OnNewLease(const ChainRow& row, absl::Duration waited);
  // `listed`: the worker already holds the chain, so it needs no grant message.
  void GrantLease(ChainEntry* chain, int64_t epoch, const WorkerEntry& worker, bool listed);
  // PutLease and RemoveLease also update the tenant's share.
  void PutLease(Lease lease);
  void RemoveLease(const ChainId& chain);
  void OnGrantRefused(Lease* lease, const absl::Status& why);
  // `trust`: the result of options.check_resume_point.
  void OnGranted(const ChainId& chain, const ApplyResult& result, const absl::Status& trust);
  void RunPolicy();  // decides and applies the plan

  // Workers (dispatcher_workers.cc).
  bool MustStop(const ChainId& chain, const WorkerEntry& worker);
  enum class Verdict { kNothing, kKeep, kKeepAndHandBack, kHandBack, kLeaseAgain, kDrop, kFenced };
  Verdict Judge(const HeldChain& held, const WorkerEntry& worker);
  // Returns true if the worker should get an answer at once.
  bool Renew(const HeldChain& held, const WorkerEntry& worker);
  void Release(const ReleasedChain& released, const WorkerEntry& worker);
  void RestoreUnseenGrants(const WorkerEntry& worker);
  void AnswerIfDue(const std::string& worker);
  bool MayHold(const HeldCall& call, const WorkerEntry& worker);
  bool HasRoom(const WorkerEntry& worker) const;
  void BoundDrain(const WorkerEntry& worker);
  void EndDrain(const std::string& worker);  // the drain's time is over
  bool HasOrders(const HeldCall& call, const WorkerEntry& worker);
  void OrderBack(Lease* lease);
  SynchronizeReply MakeReply(const WorkerEntry& worker, const HeldCall& call);
  // Adds the grants that fit one message; returns false if some are left for the worker's next call.
  bool AddGrants(const WorkerEntry& worker, SynchronizeReply* reply);
  std::optional<HeldCall> TakeHeld(const std::string& worker);
  // `content`: the result of CheckContent. A commit gets this error only if it has its lease.
  void Commit(ProgressCommit commit, const absl::Status& content, const Admission& caller, Reply<CommitReply> done);
  void Tell(CommitFigures figures, absl::Duration began, const ApplyResult& result);
  std::vector<WorkerView> Workers(const std::optional<std::string>& tenant = std::nullopt) const;
  absl::Duration OldestWait() const;

  absl::Duration LeaseEndsAfter(absl::Duration from) const { return from + options.lease_ttl + options.lease_grace; }
  // A worker whose calls are held one after the other may lose one call and keeps its leases. A worker that does not
  // know the term yet does not give up its first call.
  absl::Duration LongestHold() const {
    return std::min<absl::Duration>(options.sync_interval / 2, limits::kSyncInterval);
  }

  const Clock* const clock;
  Executor* const executor;
  const StateStore* const store;
  StateWriter* const writer;
  Catalog* const catalog;
  Versions* const versions;
  const DispatcherOptions& options;
  std::weak_ptr<Impl> self;  // for tasks on the executor
  ControlObserver no_observer;
  ControlObserver* const observer;
  EventLog* const events;
  TenantQuotas quotas;

  absl::Duration now;
  std::map<std::string, HeldCall> held;  // by worker
  std::set<std::pair<absl::Duration, std::string>> held_by_age;
  std::set<std::string> stirred;                                       // workers whose held call may be due
  std::map<std::string, std::map<uint64_t, Reply<Watched>>> watchers;  // by job and ticket
  std::map<ChainId, std::deque<std::function<void()>>> waiting;  // commits that wait for the chain's change in flight
  std::set<std::pair<absl::Duration, std::string>> purges;       // deleted jobs, by time of their purge
  bool purging = false;                                          // a page of one purge is in flight
  std::set<std::pair<absl::Duration, std::string>> drains_due;   // workers whose chains are revoked at that time
  bool policy_due = true;
  absl::Duration next_policy;
  std::optional<absl::Duration> waiting_since;  // start of the time for which some chain has waited without a break
  std::optional<absl::Duration> next_attempt;   // the earliest not_before that the policy has seen
  std::optional<absl::Duration> armed;
  uint64_t ids_made = 0, watches_made = 0;
  std::vector<std::function<void()>> outbox;
  std::vector<std::string> ended;                         // jobs that on_job_end has not seen
  std::set<std::string> changed_jobs;                     // jobs whose watchers are told at the end of the entry
  std::vector<std::shared_ptr<const JobView>> old_views;  // freed after the lock is released
  struct LogLine {
    LogLevel level;
    std::string message;
    std::vector<LogField> fields;
  };
  std::vector<LogLine> log_lines;
  absl::Duration next_silence_check;
};

// Shared with the tasks on the executor.
struct Dispatcher::Impl {
  Impl(const DispatcherParts& parts, StoredState state, DispatcherOptions o)
      : catalog(parts.catalog),
        store(parts.store),
        options(std::move(o)),
        events(parts.events),
        core(parts, std::move(state), options, events.get()) {}

  const Catalog* const catalog;
  const StateStore* const store;
  const DispatcherOptions options;
  const std::shared_ptr<EventLog> events;
  Mutex mutex;
  Core core CHAINFLEET_GUARDED_BY(mutex);
};

// The only access to the core. Locks, advances time and ends expired leases. At the end decides, answers and arms the
// timer. Replies and log lines leave after the lock is released.
class ABSL_SCOPED_LOCKABLE Dispatcher::Entered {
 public:
  // If there is no memory, the process ends: the lock would stay held.
  explicit Entered(Impl* impl) noexcept ABSL_EXCLUSIVE_LOCK_FUNCTION(impl->mutex);
  ~Entered() ABSL_UNLOCK_FUNCTION();
  Entered(const Entered&) = delete;

  Core* operator->() const { return core_; }
  Core& operator*() const { return *core_; }

 private:
  Impl* const impl_;
  Core* const core_;
};

}  // namespace chainfleet
