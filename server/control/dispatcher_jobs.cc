#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/domain/chain_memory.h"
#include "core/domain/no_such.h"
#include "core/domain/wire_bytes.h"
#include "server/control/dispatcher_impl.h"
#include "server/control/page_token.h"

namespace chainfleet {
namespace {

constexpr size_t kMaxWatchersPerJob = 1024;

// Compares with the original number of chains, because chains may have been added since.
bool IsTheSame(const JobRow& older, const JobSpec& spec) {
  JobSpec asked = older.plan->spec;
  if (older.asked_chains > 0) asked.chains = older.asked_chains;
  return asked == spec;
}

absl::Status CheckHasChain(const JobSpec& spec, int32_t chain) {
  if (chain >= 0 && chain < NumChains(spec)) return absl::OkStatus();
  return InvalidFields(
      {{"only_chain", absl::StrCat("the job has no chain ", chain, ", only 0 to ", NumChains(spec) - 1)}});
}

// Admits any job whose draws may end early or be deleted again.
absl::Status CheckRoom(const JobPlan& plan, std::optional<int64_t> free_bytes) {
  const int64_t bytes = EstimateStoredBytes(plan);
  if (!free_bytes || bytes <= *free_bytes || plan.spec.until.any() || plan.spec.retention.ttl_seconds) {
    return absl::OkStatus();
  }
  return WithReason(absl::ResourceExhaustedError(
                        absl::StrCat("the draws of ", NumChains(plan.spec), " chains would take about ", bytes,
                                     " bytes, and the disk for them has ", *free_bytes,
                                     " free: collect fewer (collect), keep the newest only (retention), or make room")),
                    "DISK_TOO_SMALL");
}

}  // namespace

JobEntry* Dispatcher::Core::AddJob(StoredJob stored) {
  JobEntry* job = jobs.Add(std::move(stored));
  WaitFromNow(job);
  return job;
}

absl::StatusOr<std::string> Dispatcher::ResolveJob(const std::string& tenant, const std::string& name) {
  Entered core(impl_.get());
  CHAINFLEET_ASSIGN_OR_RETURN(const JobEntry* job, core->jobs.Resolve(tenant, name));
  return job->row.id;
}

void Dispatcher::CreateJob(const std::string& tenant, const JobSpec& spec, const std::string& request_id,
                           bool validate_only, Reply<JobView> done, std::optional<int32_t> only_chain) {
  // Check outside the lock: a large job takes long, and renewals of leases wait for the lock.
  absl::Status valid = InvalidFields(Validate(spec));
  if (valid.ok() && only_chain) valid = CheckHasChain(spec, *only_chain);
  JobPlan plan;
  plan.spec = spec;
  if (valid.ok()) valid = impl_->catalog->FindData(tenant, &plan);
  if (valid.ok()) valid = CheckAgainstData(spec, plan.dataset ? &*plan.dataset : nullptr, StoredOf(plan), plan.weights);
  const auto& free_bytes = impl_->options.free_bytes;
  if (valid.ok() && free_bytes) valid = CheckRoom(plan, free_bytes());
  Entered core(impl_.get());
  if (valid.ok()) {
    const DigestHex checked = plan.dataset ? plan.dataset->digest : "";
    valid = core->catalog->FindData(tenant, &plan);
    if (valid.ok() && plan.dataset && plan.dataset->digest != checked) {
      valid = absl::AbortedError(absl::StrCat("data set ", spec.dataset, " was replaced meanwhile: submit again"));
    }
  }
  if (!valid.ok()) return core->Say<JobView>(done, valid);
  for (StoredModel& file : plan.weights) file.signature.reset();  // workers read the files themselves
  if (validate_only) {
    JobView view;
    view.plan = std::make_shared<const JobPlan>(std::move(plan));
    return core->Say<JobView>(done, std::move(view));
  }
  plan.job = MakeJobId(spec.name, Fold(core->options.id_key, ++core->ids_made).value);
  const auto room = core->quotas.Reserve(
      core->jobs, *core->catalog, {tenant, request_id, 1, NumChains(spec), 0, request_id.empty() ? plan.job : ""});
  if (!room.ok()) return core->Say<JobView>(done, room.status());
  const auto shared = std::make_shared<const JobPlan>(std::move(plan));
  const auto then = [shared, done, room = *room](Core& self, const ApplyResult& result) {
    room->Release();
    if (result.status.ok()) {
      const JobEntry* job = self.AddJob({*result.job, result.chains, std::nullopt});
      self.events->Open(job->row.id, /*restored=*/false);
      self.NoteJob(LogLevel::kInfo, "job submitted", job->row.id, {{"chains", job->chains.size()}});
      self.ReportProgress(*job);
      self.policy_due = true;
      return self.Say<JobView>(done, self.ViewOf(*job));
    }
    const JobEntry* older = result.job ? self.jobs.Find(result.job->id) : nullptr;
    const bool same = older != nullptr && IsTheSame(older->row, shared->spec);
    if (same) return self.Say<JobView>(done, self.ViewOf(*older));
    self.Say<JobView>(done, result.status);
  };
  core->Change(change::CreateJob{shared, request_id, tenant, only_chain}, then);
}

void Dispatcher::SetIntent(const std::string& id, JobIntent intent, Reply<JobView> done) {
  Entered core(impl_.get());
  if (core->jobs.Find(id) == nullptr) return core->Say<JobView>(done, NoSuch("job", id));
  // Write the intent even if the job has it, because another intent may be in flight.
  core->Change(change::SetIntent{id, intent}, [id, intent, done](Core& self, const ApplyResult& result) {
    if (!result.status.ok()) return self.Say<JobView>(done, result.status);
    if (intent == JobIntent::kDelete) self.SchedulePurge(id);
    self.policy_due = true;
    JobEntry* changed = self.jobs.Find(id);
    if (changed == nullptr) return self.Say<JobView>(done, NoSuch("job", id));
    self.WaitFromNow(changed);
    self.StirHolders(*changed);
    self.Say<JobView>(done, self.ViewOf(*changed));
  });
}

absl::StatusOr<NamedDraws> Dispatcher::ResolveDraws(const std::string& tenant, const std::string& name) {
  Entered core(impl_.get());
  if (const auto named = core->versions->FindAlias(tenant, name)) {
    if (const JobEntry* job = core->jobs.Find(named->alias.job)) {
      return NamedDraws{core->BriefOf(*job), named->version};
    }
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const JobEntry* job, core->jobs.Resolve(tenant, name));
  return NamedDraws{core->BriefOf(*job), nullptr};
}

JobBrief Dispatcher::Core::BriefOf(const JobEntry& job) const {
  return {job.row.id,     job.row.tenant, job.row.plan,
          job.row.intent, job.num_draws,  versions->NamesOf(job.row.id).newest};
}

std::vector<RetainedJob> Dispatcher::RetainedJobs() {
  Entered core(impl_.get());
  std::vector<RetainedJob> retained;
  for (const auto& [sequence, job] : core->jobs.by_age()) {
    const RetentionSpec& retention = job->row.plan->spec.retention;
    if (!retention.any() || job->row.intent == JobIntent::kDelete) continue;
    RetainedJob& one = retained.emplace_back(RetainedJob{job->row.id, retention, {}, {}});
    for (const ChainEntry& chain : job->chains) one.num_draws.push_back(chain.row.num_draws);
  }
  return retained;
}

absl::StatusOr<std::shared_ptr<TenantReservation>> Dispatcher::ReserveRoom(const std::string& tenant,
                                                                           const std::string& content, int64_t bytes,
                                                                           int64_t contents) {
  Entered core(impl_.get());
  return core->quotas.Reserve(core->jobs, *core->catalog,
                              {.tenant = tenant, .bytes = bytes, .object = content, .contents = contents});
}

std::vector<LimitUsage> Dispatcher::TenantUsage(const std::string& tenant) {
  Entered core(impl_.get());
  return core->quotas.Usage(core->jobs, *core->catalog, tenant);
}

absl::StatusOr<JobView> Dispatcher::GetJob(const std::string& id) {
  Entered core(impl_.get());
  const JobEntry* job = core->jobs.Find(id);
  if (job == nullptr) return NoSuch("job", id);
  return core->ViewOf(*job);
}

absl::StatusOr<JobBrief> Dispatcher::GetBrief(const std::string& id) {
  Entered core(impl_.get());
  const JobEntry* job = core->jobs.Find(id);
  if (job == nullptr) return NoSuch("job", id);
  return core->BriefOf(*job);
}

absl::StatusOr<std::vector<ChainState>> Dispatcher::GetChainStates(const std::string& id) {
  Entered core(impl_.get());
  const JobEntry* job = core->jobs.Find(id);
  if (job == nullptr) return NoSuch("job", id);
  std::vector<ChainState> states;
  for (const ChainEntry& chain : job->chains) states.push_back(chain.row.state);
  return states;
}

absl::StatusOr<Page<ListedJob>> Dispatcher::ListJobs(const JobFilter& filter, int32_t page_size,
                                                     const std::string& page_token) {
  const std::string arguments =
      absl::StrCat("jobs ", filter.state ? ToString(*filter.state) : "", " ", filter.tenant.value_or(""));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string last, CursorOf(arguments, page_token));
  Entered core(impl_.get());
  const auto& jobs = core->jobs.by_age();
  auto job = jobs.rbegin();
  if (!last.empty()) {
    const JobEntry* const listed = core->jobs.Find(last);
    // A forged token must not tell whether another tenant has this job, or when it was created.
    if (listed == nullptr || (filter.tenant && listed->row.tenant != *filter.tenant)) return BadPageToken();
    job = std::make_reverse_iterator(jobs.lower_bound(listed->row.sequence));
  }
  Page<ListedJob> page;
  PageRoom room(static_cast<size_t>(ClampPageSize(page_size)));
  for (; job != jobs.rend(); ++job) {
    if (filter.state && job->second->state != *filter.state) continue;
    if (filter.tenant && job->second->row.tenant != *filter.tenant) continue;
    int64_t bytes = WireBytes(job->second->row.plan->spec);
    for (const auto& [point, why] : job->second->row.stopped) bytes += static_cast<int64_t>(why.size()) + 16;
    if (!room.Take(bytes)) {
      page.next_page_token = MakePageToken(arguments, page.items.back().id);
      break;
    }
    page.items.push_back(ListedOf(*job->second, core->versions->NamesOf(job->second->row.id).newest));
  }
  return page;
}

Dispatcher::WatchTicket Dispatcher::WatchJob(const std::string& id, uint64_t seen, Reply<Watched> changed) {
  Entered core(impl_.get());
  const auto answer = [&](absl::StatusOr<Watched> watched) {
    core->Say<Watched>(changed, std::move(watched));
    return WatchTicket();
  };
  JobEntry* job = core->jobs.Find(id);
  if (job == nullptr) return answer(NoSuch("job", id));
  if (job->version > seen) return answer(Watched{core->SharedViewOf(job), job->version});
  auto& watchers = core->watchers[job->row.id];
  if (watchers.size() >= kMaxWatchersPerJob) {
    return answer(BoundReached("job_watchers",
                               absl::StrCat("job ", id, " is watched by ", watchers.size(), " callers already"),
                               "QUEUE_FULL"));
  }
  watchers.emplace(++core->watches_made, std::move(changed));
  return {job->row.id, core->watches_made};
}

void Dispatcher::Unwatch(const WatchTicket& ticket) {
  Entered core(impl_.get());
  const auto watchers = core->watchers.find(ticket.job);
  if (watchers == core->watchers.end()) return;
  const auto watcher = watchers->second.find(ticket.number);
  if (watcher == watchers->second.end()) return;
  core->Say<Watched>(watcher->second, absl::CancelledError(absl::StrCat("nobody watches job ", ticket.job, " here")));
  watchers->second.erase(watcher);
  if (watchers->second.empty()) core->watchers.erase(watchers);
}

}  // namespace chainfleet
