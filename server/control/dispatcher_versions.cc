// Versions of jobs, the names that tenants give them, and which draws may go.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/control/dispatcher_impl.h"
#include "server/control/page_token.h"

namespace chainfleet {
namespace {

// Whether no draw was committed since `snapshot` was made.
bool IsCurrent(const JobEntry& job, const Snapshot& snapshot) {
  return std::ranges::all_of(
      job.chains, [&](const ChainEntry& chain) { return snapshot.DrawsOf(chain.row.id.index) == chain.row.num_draws; });
}

absl::Status CheckAlias(const Alias& alias) {
  std::vector<FieldViolation> violations;
  if (const absl::Status name = CheckName("alias", alias.name); !name.ok()) {
    violations.push_back({"name", std::string(name.message())});
  } else if (alias.name == "latest") {
    violations.push_back({"name", "must not be \"latest\": @latest is the newest job"});
  }
  if (alias.number < 0) violations.push_back({"version", "must be 0 (the newest) or a version number"});
  return InvalidFields(violations);
}

}  // namespace

void Dispatcher::Impl::KeepVersion(JobEntry* job, const Snapshot& snapshot) {
  const bool is_new = !job->newest_snapshot || job->newest_snapshot->number < snapshot.number;
  if (!is_new) return;
  job->newest_snapshot = snapshot;
  job->draws_at_last_version = snapshot.num_draws();
  job->last_version_at = now;
}

// At a commit, and when the time for the next version has come.
void Dispatcher::Impl::MakeVersionIfDue(JobEntry* job) {
  const SnapshotsSpec& policy = job->row.plan->spec.snapshots;
  const int64_t fresh = job->num_draws - job->draws_at_last_version;
  if (!policy.any() || fresh <= 0 || job->making_version || job->row.finished_at) return;
  if (!policy.every_draws || fresh < *policy.every_draws) {
    if (!policy.every_seconds) return;
    const absl::Duration due = job->last_version_at + absl::Seconds(*policy.every_seconds);
    if (due > now) {
      versions_due.emplace(due, job->row.id);
      return;
    }
  }
  job->making_version = true;
  Change(change::CreateSnapshot{job->row.id}, [id = job->row.id](Impl& impl, const ApplyResult& result) {
    JobEntry* entry = impl.jobs.Find(id);
    if (entry == nullptr) return;
    entry->making_version = false;
    if (!result.status.ok()) {  // a full disk, most likely: another try at the next commit, or soon
      impl.versions_due.emplace(impl.now + limits::kUpkeepInterval, id);
      return;
    }
    impl.KeepVersion(entry, *result.snapshot);
    impl.Bump(entry);
    impl.MakeVersionIfDue(entry);  // commits may have come meanwhile
  });
}

void Dispatcher::PinSnapshot(const std::string& id, int64_t number, bool refresh, Reply<Snapshot> done) {
  Impl& impl = *impl_;
  {
    Impl::Entered entered(&impl);
    const JobEntry* job = impl.jobs.Find(id);
    if (job == nullptr) return impl.Say<Snapshot>(done, absl::NotFoundError(absl::StrCat("no job ", id)));
    const std::optional<Snapshot>& newest = job->newest_snapshot;
    if (number > 0) {
      if (newest && newest->number == number) return impl.Say<Snapshot>(done, *newest);
      return impl.Say([store = impl.store, id, number, done] { done(store->FindSnapshot(id, number)); });
    }
    const bool suffices = newest && (!refresh || job->row.plan->spec.snapshots.any() || IsCurrent(*job, *newest));
    if (suffices) return impl.Say<Snapshot>(done, *newest);
    if (!refresh) {
      return impl.Say<Snapshot>(
          done, WithReason(absl::FailedPreconditionError(absl::StrCat(
                               "job ", job->row.id,
                               job->row.finished_at ? " ended without a version: `chainfleet describe` says why"
                                                    : " has no version yet: wait for its draws")),
                           "NO_DRAWS"));
    }
  }
  CreateSnapshot(id, std::move(done));
}

void Dispatcher::CreateSnapshot(const std::string& job, Reply<Snapshot> done) {
  Impl::Entered entered(impl_.get());
  impl_->Change(change::CreateSnapshot{job}, [done = std::move(done)](Impl& i, const ApplyResult& result) {
    if (!result.status.ok()) return i.Say<Snapshot>(done, result.status);
    if (JobEntry* entry = i.jobs.Find(result.snapshot->job)) {
      i.KeepVersion(entry, *result.snapshot);
      i.Bump(entry);
    }
    i.Say<Snapshot>(done, *result.snapshot);
  });
}

void Dispatcher::DeleteSnapshot(const std::string& job, int64_t number, Reply<bool> done) {
  Impl::Entered entered(impl_.get());
  impl_->Change(change::DeleteSnapshot{job, number}, [job, number, done](Impl& i, const ApplyResult& result) {
    if (!result.status.ok()) return i.Say<bool>(done, result.status);
    JobEntry* entry = i.jobs.Find(job);
    // One that was made meanwhile is newer than the result knows.
    if (entry != nullptr && entry->newest_snapshot && entry->newest_snapshot->number == number) {
      entry->newest_snapshot = result.snapshot;
      i.Bump(entry);
    }
    i.Say<bool>(done, true);
  });
}

void Dispatcher::SetAlias(Alias alias, Reply<Alias> done) {
  const absl::Status valid = CheckAlias(alias);
  if (valid.ok() && alias.number == 0) {
    return PinSnapshot(alias.job, 0, /*refresh=*/true,
                       [weak = impl_->weak_from_this(), alias, done](absl::StatusOr<Snapshot> newest) {
                         const auto impl = weak.lock();
                         if (impl == nullptr) return;
                         if (!newest.ok()) return done(newest.status());
                         Impl::Entered entered(impl.get());
                         impl->SetAlias({alias.tenant, alias.name, alias.job, newest->number}, done);
                       });
  }
  Impl::Entered entered(impl_.get());
  if (!valid.ok()) return impl_->Say<Alias>(done, valid);
  impl_->SetAlias(alias, done);
}

void Dispatcher::Impl::SetAlias(const Alias& alias, const Reply<Alias>& done) {
  Change(change::SetAlias{alias}, [alias, done](Impl& i, const ApplyResult& result) {
    if (!result.status.ok()) return i.Say<Alias>(done, result.status);
    i.PutAlias(alias, *result.snapshot);
    i.Say<Alias>(done, alias);
  });
}

void Dispatcher::Impl::PutAlias(const Alias& alias, const Snapshot& snapshot) {
  ForgetAlias(alias.tenant, alias.name);
  aliases[{alias.tenant, alias.name}] = {alias, std::make_shared<const Snapshot>(snapshot)};
  if (JobEntry* job = jobs.Find(alias.job)) {
    job->aliases[alias.name] = alias.number;
    Bump(job);
  }
}

void Dispatcher::Impl::ForgetAlias(const std::string& tenant, const std::string& name) {
  const auto found = aliases.find({tenant, name});
  if (found == aliases.end()) return;
  if (JobEntry* job = jobs.Find(found->second.alias.job)) {
    job->aliases.erase(name);
    Bump(job);
  }
  aliases.erase(found);
}

void Dispatcher::DeleteAlias(const std::string& tenant, const std::string& name, Reply<bool> done) {
  Impl::Entered entered(impl_.get());
  impl_->Change(change::DeleteAlias{tenant, name}, [tenant, name, done](Impl& i, const ApplyResult& result) {
    if (!result.status.ok()) return i.Say<bool>(done, result.status);
    i.ForgetAlias(tenant, name);
    i.Say<bool>(done, true);
  });
}

absl::StatusOr<Page<Alias>> Dispatcher::ListAliases(const std::string& tenant, int32_t page_size,
                                                    const std::string& page_token) {
  const auto limit = static_cast<size_t>(ClampPageSize(page_size));
  const std::string arguments = absl::StrCat("aliases ", tenant);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string after, CursorOf(arguments, page_token));
  Impl::Entered entered(impl_.get());
  Page<Alias> page;
  for (auto i = impl_->aliases.upper_bound({tenant, after}); i != impl_->aliases.end(); ++i) {
    if (i->first.first != tenant) break;
    if (page.items.size() == limit) {
      page.next_page_token = MakePageToken(arguments, page.items.back().name);
      break;
    }
    page.items.push_back(i->second.alias);
  }
  return page;
}

std::vector<Alias> Dispatcher::AliasesOf(const std::string& id) {
  Impl::Entered entered(impl_.get());
  std::vector<Alias> aliases;
  const JobEntry* job = impl_->jobs.Find(id);
  if (job == nullptr) return aliases;
  for (const auto& [name, number] : job->aliases) aliases.push_back({job->row.tenant, name, id, number});
  return aliases;
}

absl::StatusOr<NamedDraws> Dispatcher::ResolveDraws(const std::string& tenant, const std::string& name) {
  Impl::Entered entered(impl_.get());
  if (const auto alias = impl_->aliases.find({tenant, name}); alias != impl_->aliases.end()) {
    const JobEntry* job = impl_->jobs.Find(alias->second.alias.job);
    if (job != nullptr) return NamedDraws{BriefOf(*job), alias->second.snapshot};
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const JobEntry* job, impl_->jobs.Resolve(tenant, name));
  return NamedDraws{BriefOf(*job), nullptr};
}

std::vector<RetainedJob> Dispatcher::RetainedJobs() {
  Impl::Entered entered(impl_.get());
  std::vector<RetainedJob> retained;
  for (const auto& [sequence, job] : impl_->jobs.by_age()) {
    const RetentionSpec& retention = job->row.plan->spec.retention;
    if (!retention.any() || job->row.intent == JobIntent::kDelete) continue;
    RetainedJob one{job->row.id, retention, {}, std::vector<int64_t>(job->chains.size())};
    for (const ChainEntry& chain : job->chains) one.num_draws.push_back(chain.row.num_draws);
    for (const auto& [name, number] : job->aliases) {
      const Snapshot& named = *impl_->aliases.at({job->row.tenant, name}).snapshot;
      for (size_t i = 0; i < one.held.size(); ++i) {
        one.held[i] = std::max(one.held[i], named.DrawsOf(static_cast<int32_t>(i)));
      }
    }
    retained.push_back(std::move(one));
  }
  return retained;
}

}  // namespace chainfleet
