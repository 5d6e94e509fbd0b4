#include "server/control/dispatcher.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "server/control/dispatcher_impl.h"

namespace chainfleet {
namespace {

// The event of a change to this intent, by the verbs of the command line.
const char* EventOf(JobIntent intent) {
  constexpr const char* kEvents[] = {"job resumed", "job paused", "job aborted", "job cancelled", "job deleted"};
  return kEvents[static_cast<int>(intent)];
}

}  // namespace

Dispatcher::Dispatcher(const DispatcherParts& parts, StoredState state, DispatcherOptions options)
    : impl_(std::make_shared<Impl>(parts, std::move(state), std::move(options))) {
  Entered core(impl_.get());
  core->Start(impl_);
}

// Tasks that still wait on the executor find no Impl and do nothing.
Dispatcher::~Dispatcher() = default;

Dispatcher::Core::Core(const DispatcherParts& parts, StoredState state, const DispatcherOptions& o, EventLog* log)
    : SchedulingTables{{}, {}, {}, FairShare(o.shares), {}},
      clock(parts.clock),
      executor(parts.executor),
      store(parts.store),
      writer(parts.writer),
      catalog(parts.catalog),
      versions(parts.versions),
      options(o),
      observer(options.observer != nullptr ? options.observer : &no_observer),
      events(log),
      quotas(options.tenant_limits),
      now(clock->Monotonic()) {
  for (const RetiredName& name : state.retired_names) jobs.Retire(name);
  for (StoredJob& job : state.jobs) {
    JobEntry& entry = *AddJob(std::move(job));
    events->Open(entry.row.id, /*restored=*/true);
    if (entry.row.intent == JobIntent::kDelete) SchedulePurge(entry.row.id);
    for (const ChainEntry& chain : entry.chains) {
      const ChainRow& row = chain.row;
      if (row.state != ChainState::kLeased) continue;
      Lease lease{row.id, row.lease_epoch, row.worker, row.incarnation, LeaseEndsAfter(now)};
      lease.state = LeaseState::kRestored;
      lease.bytes = entry.chain_bytes();
      lease.tenant = entry.row.tenant;
      PutLease(std::move(lease));
      if (row.suspect()) turns.Begin(row.worker, row.id);
    }
  }
}

void Dispatcher::Core::Start(const std::weak_ptr<Impl>& impl) {
  self = impl;
  versions->OnChange([impl](const std::string& id) {
    const auto alive = impl.lock();
    if (alive == nullptr) return;
    Entered core(alive.get());
    if (JobEntry* job = core->jobs.Find(id)) core->Bump(job);
  });
  for (const auto& [sequence, job] : jobs.by_age()) {
    ReportProgress(*job);
    StopWhatHasEnough(job, {});
  }
}

Dispatcher::Entered::Entered(Impl* impl) noexcept : impl_(impl), core_(&impl->core) {
  impl_->mutex.Lock();
  core_->Advance();
}

Dispatcher::Entered::~Entered() {
  core_->Settle();
  core_->TellOfEndedJobs();
  core_->TellOfChangedJobs();
  std::vector<std::function<void()>> replies = std::exchange(core_->outbox, {});
  const std::vector<Core::LogLine> lines = std::exchange(core_->log_lines, {});
  const std::vector<std::shared_ptr<const JobView>> old_views = std::exchange(core_->old_views, {});
  impl_->mutex.Unlock();
  for (const Core::LogLine& line : lines) Log(line.level, line.message, line.fields);
  for (auto& reply : replies) core_->executor->Schedule(std::move(reply));
}

void Dispatcher::Core::Advance() {
  now = clock->Monotonic();
  NoteSilentWorkers();
  while (!drains_due.empty() && drains_due.begin()->first <= now) {
    EndDrain(drains_due.extract(drains_due.begin()).value().second);
  }
  EndLeases();
  if (next_attempt && *next_attempt <= now) {
    next_attempt.reset();
    policy_due = true;
  }
  if (!purging && !purges.empty() && purges.begin()->first <= now) {
    purging = true;
    Purge({purges.begin()->second});
    purges.erase(purges.begin());
  }
}

// Writes one page of one job at a time, behind changes appended meanwhile, so that commits wait for one page at most.
void Dispatcher::Core::Purge(const change::PurgeJob& page) {
  Change(page, [job = page.job](Core& core, const ApplyResult& result) {
    if (result.status.ok() && result.purge) return core.Purge(*result.purge);
    core.purging = false;
    if (!result.status.ok()) return core.SchedulePurge(job);
    core.jobs.Remove(job);
    core.versions->Forget(job);
    core.events->Close(job);
    core.TellWatchers(job, WithReason(absl::NotFoundError("job " + job + " was deleted"), "JOB_NOT_FOUND"));
  });
}

void Dispatcher::Core::SchedulePurge(const std::string& job) { purges.emplace(now + options.longest_call, job); }

void Dispatcher::Core::Settle() {
  if (policy_due && now >= next_policy) RunPolicy();
  if (jobs.queue().empty() && jobs.suspect_queue().empty()) {
    waiting_since.reset();
  } else if (!waiting_since) {
    waiting_since = now;
  }
  while (!held_by_age.empty() && held_by_age.begin()->first + LongestHold() <= now) {
    const std::string worker = held_by_age.begin()->second;
    stirred.erase(worker);
    AnswerIfDue(worker);
  }
  for (const std::string& worker : std::exchange(stirred, {})) AnswerIfDue(worker);
  ArmTimer();
}

// A replaced timer still fires and does nothing. Each lowering of the next time adds at most one such timer.
void Dispatcher::Core::ArmTimer() {
  std::optional<absl::Duration> next = leases.NextEnd();
  const auto consider = [&](absl::Duration time) { next = next ? std::min(*next, time) : time; };
  if (!held_by_age.empty()) consider(held_by_age.begin()->first + LongestHold());
  if (!purges.empty() && !purging) consider(purges.begin()->first);
  if (!drains_due.empty()) consider(drains_due.begin()->first);
  if (policy_due) consider(next_policy);
  if (next_attempt) consider(*next_attempt);
  if (!next) return;
  // An overdue time waits for a change in flight, whose end enters the core again.
  const absl::Duration at = *next > now ? *next : now + limits::kPolicyInterval;
  if (armed && *armed <= at && *armed > now) return;
  armed = at;
  executor->ScheduleAfter(at - now, [impl = self] {
    if (const auto alive = impl.lock()) Entered core(alive.get());
  });
}

void Dispatcher::Core::Change(StateChange change, Then then, Look look) {
  const auto done = [impl = self, then = std::move(then), look = std::move(look)](const ApplyResult& result) {
    const auto alive = impl.lock();
    if (alive == nullptr) return;
    if (look) look(result);
    Entered core(alive.get());
    core->Absorb(result);
    then(*core, result);
  };
  writer->Write(std::move(change), done);
}

void Dispatcher::Core::ChangeChain(ChainEntry* chain, StateChange change, Then then, Look look) {
  CHAINFLEET_CHECK(!chain->in_flight) << ToString(chain->row.id);
  chain->in_flight = true;
  const auto changed = [id = chain->row.id, then = std::move(then)](Core& core, const ApplyResult& result) {
    if (ChainEntry* entry = core.jobs.Find(id)) entry->in_flight = false;
    core.leases.LookAgain(id);
    then(core, result);
    for (auto queued = core.waiting.find(id); queued != core.waiting.end() && !core.IsInFlight(id);
         queued = core.waiting.find(id)) {
      const std::function<void()> next = std::move(queued->second.front());
      queued->second.pop_front();
      if (queued->second.empty()) core.waiting.erase(queued);
      next();
    }
  };
  Change(std::move(change), changed, std::move(look));
}

void Dispatcher::Core::Absorb(const ApplyResult& result) {
  if (!result.status.ok()) return;
  if (result.job) AbsorbJob(*result.job);  // first, because its plan may have more chains now
  for (const ChainRow& row : result.chains) {
    JobEntry* job = jobs.Find(row.id.job);
    if (job == nullptr) continue;
    const bool had_enough = job->HasEnough(row.id.index);
    const ChainEntry* before = jobs.Find(row.id);
    const bool waited = before != nullptr && before->row.state == ChainState::kPending;
    const bool ends = before != nullptr && !IsFinal(before->row.state) && IsFinal(row.state);
    jobs.Update(row);
    if (ends) OnChainEnd(row);
    if (ChainEntry* chain = jobs.Find(row.id); chain != nullptr && !waited) chain->waits_since = now;
    if (!had_enough && job->HasEnough(row.id.index)) StirHolders(*job);
    policy_due = policy_due || turns.HasTurn(row.id);
    if (row.state != ChainState::kLeased) {
      if (const Lease* lease = leases.Find(row.id); lease != nullptr && lease->committed()) {
        stirred.insert(lease->worker);
        RemoveLease(row.id);
      }
      policy_due = true;
    }
  }
  const std::string id = result.job ? result.job->id : result.chains.empty() ? "" : result.chains.front().id.job;
  JobEntry* job = jobs.Find(id);
  if (job == nullptr) return;
  if (result.version) versions->Keep(*result.version);
  ReportProgress(*job);
  StopWhatHasEnough(job, {});
  Bump(job);
}

// Runs for every end of a chain: by a commit of its worker, or by the server.
void Dispatcher::Core::OnChainEnd(const ChainRow& row) {
  observer->OnChainEnd(row.state);
  const bool failed = row.state == ChainState::kFailed || row.state == ChainState::kDiverged;
  if (row.state != ChainState::kCancelled) {  // the job's own event tells it
    Note(failed ? LogLevel::kWarning : LogLevel::kInfo,
         absl::StrCat("chain ", absl::AsciiStrToLower(ToString(row.state))), row,
         {{"step", row.step}, {"draws", row.num_draws}, {"reason", row.reason}});
  }
  if (failed && options.traces != nullptr) options.traces->Forget(row.id);
}

void Dispatcher::Core::AbsorbJob(const JobRow& row) {
  JobEntry* job = jobs.Find(row.id);
  if (job == nullptr) return;
  const bool stops = row.stopped.size() > job->row.stopped.size();
  if (row.finished_at && !job->row.finished_at && row.intent != JobIntent::kDelete) ended.push_back(row.id);
  if (row.intent != job->row.intent) NoteJob(LogLevel::kInfo, EventOf(row.intent), row.id);
  jobs.Update(row);
  if (!stops) return;
  StirHolders(*job);
  policy_due = true;
}

void Dispatcher::Core::TellOfEndedJobs() {
  for (const std::string& id : std::exchange(ended, {})) {
    const JobEntry* job = jobs.Find(id);
    if (job == nullptr) continue;
    NoteJob(job->state == JobState::kFailed ? LogLevel::kWarning : LogLevel::kInfo, "job ended", id,
            {{"state", ToString(job->state)}, {"draws", job->num_draws}});
    if (!options.on_job_end) continue;
    const auto keep = [impl = self, id](std::map<std::string, std::string> parts, const std::function<void()>& done) {
      const auto alive = impl.lock();
      if (alive == nullptr) return;
      Entered entered(alive.get());
      entered->Change(change::KeepFindings{id, std::move(parts)}, [id, done](Core& core, const ApplyResult& result) {
        if (!result.status.ok()) {
          core.NoteJob(LogLevel::kWarning,
                       "trace findings of an ended job are not stored: they are lost when this process ends", id,
                       {{"error", result.status.ToString()}});
        }
        core.Say(done);
      });
    };
    options.on_job_end(ViewOf(*job), keep);
  }
}

void Dispatcher::Core::ReportProgress(const JobEntry& job) {
  versions->OnProgress({job.row.id, job.row.plan, job.num_draws, job.row.finished_at.has_value()});
}

void Dispatcher::Core::WaitFromNow(JobEntry* job) {
  for (ChainEntry& chain : job->chains) chain.waits_since = now;
}

// Views are large: the old one must not stay after its version, and must not be freed under the lock.
void Dispatcher::Core::Bump(JobEntry* job) {
  ++job->version;
  if (job->view != nullptr) old_views.push_back(std::exchange(job->view, nullptr));
  if (watchers.contains(job->row.id)) changed_jobs.insert(job->row.id);
}

// Runs at the end of an entry: the statistics of a commit are set after Bump.
void Dispatcher::Core::TellOfChangedJobs() {
  for (const std::string& id : std::exchange(changed_jobs, {})) {
    if (JobEntry* job = jobs.Find(id)) TellWatchers(id, Watched{SharedViewOf(job), job->version});
  }
}

std::shared_ptr<const JobView> Dispatcher::Core::SharedViewOf(JobEntry* job) {
  if (job->view != nullptr && job->view_version == job->version) return job->view;
  auto view = std::make_shared<const JobView>(ViewOf(*job));
  if (IsFinal(job->state)) return view;  // a watch ends with it, so that keeping it would only take memory
  job->view_version = job->version;
  return job->view = std::move(view);
}

void Dispatcher::Core::StirHolders(const JobEntry& job) {
  for (const ChainEntry& chain : job.chains) {
    if (const Lease* lease = leases.Find(chain.row.id)) stirred.insert(lease->worker);
  }
}

void Dispatcher::Core::TellWatchers(const std::string& job, const absl::StatusOr<Watched>& watched) {
  const auto found = watchers.find(job);
  if (found == watchers.end()) return;
  for (const auto& [ticket, changed] : found->second) Say<Watched>(changed, watched);
  watchers.erase(found);
}

}  // namespace chainfleet
