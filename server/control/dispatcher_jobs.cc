#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/content_limits.h"
#include "core/base/limits.h"
#include "core/domain/chain_memory.h"
#include "core/domain/wire_bytes.h"
#include "server/control/dispatcher_impl.h"
#include "server/control/page_token.h"

namespace chainfleet {
namespace {

constexpr size_t kMaxWatchersPerJob = 1024;

// Chains may have been added since the job was created.
bool IsTheSame(const JobRow& older, const JobSpec& spec) {
  JobSpec asked = older.plan->spec;
  if (older.asked_chains > 0) asked.chains = older.asked_chains;
  return asked == spec;
}

// A job whose draws may end early or go again is let in.
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

JobEntry* Dispatcher::Impl::AddJob(StoredJob stored) {
  JobEntry* job = jobs.Add(std::move(stored));
  WaitFromNow(job);
  return job;
}

absl::StatusOr<std::string> Dispatcher::ResolveJob(const std::string& tenant, const std::string& name) {
  Impl::Entered entered(impl_.get());
  CHAINFLEET_ASSIGN_OR_RETURN(const JobEntry* job, impl_->jobs.Resolve(tenant, name));
  return job->row.id;
}

void Dispatcher::CreateJob(const std::string& tenant, const JobSpec& spec, const std::string& request_id,
                           bool validate_only, Reply<JobView> done) {
  Impl& impl = *impl_;
  // A large job takes long to check: not under the lock, which renewals of leases wait for.
  absl::Status valid = InvalidFields(Validate(spec));
  JobPlan plan;
  plan.spec = spec;
  if (valid.ok()) valid = impl.catalog->FindData(&plan);
  if (valid.ok()) valid = CheckAgainstData(spec, plan.dataset ? &*plan.dataset : nullptr);
  if (valid.ok() && impl.options.free_bytes) valid = CheckRoom(plan, impl.options.free_bytes());
  Impl::Entered entered(&impl);
  if (valid.ok()) {
    const DigestHex checked = plan.dataset ? plan.dataset->digest : "";
    valid = impl.catalog->FindData(&plan);
    if (valid.ok() && plan.dataset && plan.dataset->digest != checked) {
      valid = absl::AbortedError(absl::StrCat("data set ", spec.dataset, " was replaced meanwhile: submit again"));
    }
  }
  if (!valid.ok()) return impl.Say<JobView>(done, valid);
  if (validate_only) {
    JobView view;
    view.plan = std::make_shared<const JobPlan>(std::move(plan));
    return impl.Say<JobView>(done, std::move(view));
  }
  const absl::Status room =
      CheckTenantLimits(impl.options.tenant_limits, impl.HoldingsOf(tenant), {tenant, request_id, 1, NumChains(spec)});
  if (!room.ok()) return impl.Say<JobView>(done, room);
  plan.job = MakeJobId(spec.name, Fold(impl.options.id_key, ++impl.ids_made).value);
  const auto shared = std::make_shared<const JobPlan>(std::move(plan));
  impl.Change(change::CreateJob{shared, request_id, tenant}, [shared, done](Impl& i, const ApplyResult& result) {
    if (result.status.ok()) {
      const JobEntry* job = i.AddJob({*result.job, result.chains, std::nullopt});
      i.ReportProgress(*job);
      i.policy_due = true;
      return i.Say<JobView>(done, i.ViewOf(*job));
    }
    const JobEntry* older = result.job ? i.jobs.Find(result.job->id) : nullptr;
    const bool same = older != nullptr && IsTheSame(older->row, shared->spec);
    if (same) return i.Say<JobView>(done, i.ViewOf(*older));
    i.Say<JobView>(done, result.status);
  });
}

void Dispatcher::SetIntent(const std::string& id, JobIntent intent, Reply<JobView> done) {
  Impl& impl = *impl_;
  Impl::Entered entered(&impl);
  if (impl.jobs.Find(id) == nullptr) return impl.Say<JobView>(done, NoSuchJob(id));
  // Also if it is so already: another intent may be on its way to the store.
  impl.Change(change::SetIntent{id, intent}, [id, intent, done](Impl& i, const ApplyResult& result) {
    if (!result.status.ok()) return i.Say<JobView>(done, result.status);
    if (intent == JobIntent::kDelete) i.SchedulePurge(id);
    i.policy_due = true;
    JobEntry* changed = i.jobs.Find(id);
    if (changed == nullptr) return i.Say<JobView>(done, NoSuchJob(id));
    i.WaitFromNow(changed);
    i.StirHolders(*changed);
    i.Say<JobView>(done, i.ViewOf(*changed));
  });
}

absl::StatusOr<NamedDraws> Dispatcher::ResolveDraws(const std::string& tenant, const std::string& name) {
  Impl::Entered entered(impl_.get());
  if (const auto named = impl_->versions->FindAlias(tenant, name)) {
    if (const JobEntry* job = impl_->jobs.Find(named->alias.job)) {
      return NamedDraws{impl_->BriefOf(*job), named->version};
    }
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const JobEntry* job, impl_->jobs.Resolve(tenant, name));
  return NamedDraws{impl_->BriefOf(*job), nullptr};
}

JobBrief Dispatcher::Impl::BriefOf(const JobEntry& job) const {
  return {job.row.id,     job.row.tenant, job.row.plan,
          job.row.intent, job.num_draws,  versions->NamesOf(job.row.id).newest};
}

std::vector<RetainedJob> Dispatcher::RetainedJobs() {
  Impl::Entered entered(impl_.get());
  std::vector<RetainedJob> retained;
  for (const auto& [sequence, job] : impl_->jobs.by_age()) {
    const RetentionSpec& retention = job->row.plan->spec.retention;
    if (!retention.any() || job->row.intent == JobIntent::kDelete) continue;
    RetainedJob& one = retained.emplace_back(RetainedJob{job->row.id, retention, {}, {}});
    for (const ChainEntry& chain : job->chains) one.num_draws.push_back(chain.row.num_draws);
  }
  return retained;
}

absl::Status Dispatcher::CheckTenantRoom(const std::string& tenant, int64_t bytes) {
  Impl::Entered entered(impl_.get());
  return CheckTenantLimits(impl_->options.tenant_limits, impl_->HoldingsOf(tenant),
                           {.tenant = tenant, .bytes = bytes});
}

absl::StatusOr<JobView> Dispatcher::GetJob(const std::string& id) {
  Impl::Entered entered(impl_.get());
  const JobEntry* job = impl_->jobs.Find(id);
  if (job == nullptr) return NoSuchJob(id);
  return impl_->ViewOf(*job);
}

absl::StatusOr<JobBrief> Dispatcher::GetBrief(const std::string& id) {
  Impl::Entered entered(impl_.get());
  const JobEntry* job = impl_->jobs.Find(id);
  if (job == nullptr) return NoSuchJob(id);
  return impl_->BriefOf(*job);
}

absl::StatusOr<std::vector<ChainState>> Dispatcher::GetChainStates(const std::string& id) {
  Impl::Entered entered(impl_.get());
  const JobEntry* job = impl_->jobs.Find(id);
  if (job == nullptr) return NoSuchJob(id);
  std::vector<ChainState> states;
  for (const ChainEntry& chain : job->chains) states.push_back(chain.row.state);
  return states;
}

absl::StatusOr<Page<JobView>> Dispatcher::ListJobs(const JobFilter& filter, int32_t page_size,
                                                   const std::string& page_token) {
  const size_t limit = static_cast<size_t>(ClampPageSize(page_size));
  const std::string arguments =
      absl::StrCat("jobs ", filter.state ? ToString(*filter.state) : "", " ", filter.tenant.value_or(""));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string cursor, CursorOf(arguments, page_token));
  Impl::Entered entered(impl_.get());
  const auto& jobs = impl_->jobs.by_age();
  int64_t older_than = 0;
  auto job = jobs.rbegin();
  if (absl::SimpleAtoi(cursor, &older_than)) job = std::make_reverse_iterator(jobs.lower_bound(older_than));
  Page<JobView> page;
  int64_t last = 0, bytes = 0;
  for (; job != jobs.rend(); ++job) {
    if (filter.state && job->second->state != *filter.state) continue;
    if (filter.tenant && job->second->row.tenant != *filter.tenant) continue;
    bytes += WireBytes(job->second->row.plan->spec);
    for (const auto& [point, why] : job->second->row.stopped) bytes += static_cast<int64_t>(why.size()) + 16;
    if (page.items.size() == limit || (!page.items.empty() && bytes > limits::kPageBytes)) {
      page.next_page_token = MakePageToken(arguments, absl::StrCat(last));
      break;
    }
    page.items.push_back(impl_->ViewOf(*job->second));
    last = job->first;
  }
  return page;
}

Dispatcher::WatchTicket Dispatcher::WatchJob(const std::string& id, uint64_t seen, Reply<Watched> changed) {
  Impl& impl = *impl_;
  Impl::Entered entered(&impl);
  const auto answer = [&](absl::StatusOr<Watched> watched) {
    impl.Say<Watched>(changed, std::move(watched));
    return WatchTicket();
  };
  const JobEntry* job = impl.jobs.Find(id);
  if (job == nullptr) return answer(NoSuchJob(id));
  if (job->version > seen) return answer(Watched{impl.ViewOf(*job), job->version});
  auto& watchers = impl.watchers[job->row.id];
  if (watchers.size() >= kMaxWatchersPerJob) {
    return answer(
        absl::ResourceExhaustedError(absl::StrCat("job ", id, " is watched by ", watchers.size(), " callers already")));
  }
  watchers.emplace(++impl.watches_made, std::move(changed));
  return {job->row.id, impl.watches_made};
}

void Dispatcher::Unwatch(const WatchTicket& ticket) {
  Impl& impl = *impl_;
  Impl::Entered entered(&impl);
  const auto watchers = impl.watchers.find(ticket.job);
  if (watchers == impl.watchers.end()) return;
  const auto watcher = watchers->second.find(ticket.number);
  if (watcher == watchers->second.end()) return;
  impl.Say<Watched>(watcher->second, absl::CancelledError(absl::StrCat("nobody watches job ", ticket.job, " here")));
  watchers->second.erase(watcher);
  if (watchers->second.empty()) impl.watchers.erase(watchers);
}

}  // namespace chainfleet
