#include "server/control/versions.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "core/domain/no_such.h"
#include "server/control/page_token.h"

namespace chainfleet {
namespace {

absl::Status CheckAlias(const Alias& alias) {
  std::vector<FieldViolation> violations = FieldViolationsOf(CheckName("alias", alias.name));
  if (alias.name == "latest") {
    violations.push_back({"name", "must not be \"latest\": @latest is the newest job"});
  }
  if (alias.number < 0) violations.push_back({"version", "must be 0 (the newest) or a version number"});
  return InvalidFields(violations);
}

// The versions of one job.
struct JobVersions {
  Versions::JobProgress progress;
  std::optional<Version> newest;
  int64_t draws_at_last = 0;                    // at the last version, which may be deleted since
  absl::Duration last_at;                       // monotonic; time of the last version, or of the job's appearance
  bool making = false;                          // a version by the job's own policy is being made
  bool watched = false;                         // a timer will check the policy
  std::map<std::string, NamedVersion> aliases;  // by name
};

}  // namespace

struct Versions::State : std::enable_shared_from_this<State> {
  State(const Clock* c, Executor* e, StateWriter* w, StateStore* s) : clock(c), executor(e), writer(w), store(s) {}

  const Clock* const clock;
  Executor* const executor;
  StateWriter* const writer;
  StateStore* const store;
  std::function<void(const std::string& job)> changed;

  mutable Mutex mutex;
  std::map<std::string, JobVersions> jobs CHAINFLEET_GUARDED_BY(mutex);
  // The job that an alias names, by tenant and alias.
  std::map<std::pair<std::string, std::string>, std::string> aliases CHAINFLEET_GUARDED_BY(mutex);

  void Changed(const std::string& job) const {
    if (changed && !job.empty()) changed(job);
  }

  JobVersions* Find(const std::string& job) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto found = jobs.find(job);
    return found == jobs.end() ? nullptr : &found->second;
  }

  void Keep(JobVersions* job, const Version& version) const CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (job->newest && job->newest->number >= version.number) return;
    job->newest = version;
    job->draws_at_last = version.num_draws();
    job->last_at = clock->Monotonic();
  }

  void Made(const Version& version) {
    {
      MutexLock lock(&mutex);
      if (JobVersions* job = Find(version.job)) Keep(job, version);
    }
    Changed(version.job);
  }

  // Called at commits and when the next version is due.
  void MakeIfDue(JobVersions* job) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const SnapshotsSpec& policy = job->progress.plan->spec.snapshots;
    const int64_t fresh = job->progress.num_draws - job->draws_at_last;
    if (!policy.any() || fresh <= 0 || job->making || job->progress.finished) return;
    if (!policy.every_draws || fresh < *policy.every_draws) {
      if (!policy.every_seconds) return;
      const absl::Duration wait = job->last_at + absl::Seconds(*policy.every_seconds) - clock->Monotonic();
      if (wait > absl::ZeroDuration()) return LookAgain(job, wait);
    }
    job->making = true;
    writer->Write(
        change::CreateVersion{job->progress.job},
        [self = shared_from_this(), id = job->progress.job](const ApplyResult& result) { self->OnMade(id, result); });
  }

  void OnMade(const std::string& id, const ApplyResult& result) {
    if (result.status.ok()) Made(*result.version);
    MutexLock lock(&mutex);
    JobVersions* job = Find(id);
    if (job == nullptr) return;
    job->making = false;
    // Most likely the disk is full: retry at the next commit, or soon.
    if (!result.status.ok()) return LookAgain(job, limits::kUpkeepInterval);
    MakeIfDue(job);  // draws may have been committed meanwhile
  }

  void LookAgain(JobVersions* job, absl::Duration wait) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (std::exchange(job->watched, true)) return;
    executor->ScheduleAfter(wait, [weak = weak_from_this(), id = job->progress.job] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      MutexLock lock(&self->mutex);
      JobVersions* again = self->Find(id);
      if (again == nullptr) return;
      again->watched = false;
      self->MakeIfDue(again);
    });
  }

  void PutAlias(const NamedVersion& named) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    aliases[{named.alias.tenant, named.alias.name}] = named.alias.job;
    jobs[named.alias.job].aliases[named.alias.name] = named;
  }

  // Returns the job that the alias named, "" if there was no such alias.
  std::string ForgetAlias(const std::string& tenant, const std::string& name)
      CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto alias = aliases.extract({tenant, name});
    if (!alias) return "";
    jobs[alias.mapped()].aliases.erase(name);
    return alias.mapped();
  }

  void MoveAlias(const Alias& alias, const Version& version) {
    std::string before;
    {
      MutexLock lock(&mutex);
      before = ForgetAlias(alias.tenant, alias.name);
      PutAlias({alias, std::make_shared<const Version>(version)});
    }
    if (before != alias.job) Changed(before);
    Changed(alias.job);
  }

  // Returns Pin's answer if memory has it. Otherwise the version is in the store, or must be made.
  std::optional<absl::StatusOr<Version>> Known(const std::string& id, int64_t number, bool refresh) {
    MutexLock lock(&mutex);
    const JobVersions* job = Find(id);
    if (job == nullptr) return NoSuch("job", id);
    if (number > 0) return job->newest && job->newest->number == number ? job->newest : std::nullopt;
    // Draws only grow, so equal sums mean equal draws of each chain.
    const auto is_current = [job] { return job->newest->num_draws() == job->progress.num_draws; };
    if (job->newest && (!refresh || job->progress.plan->spec.snapshots.any() || is_current())) return *job->newest;
    if (refresh) return std::nullopt;
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "job ", id,
                          job->progress.finished ? " ended without a version: `chainfleet describe` says why"
                                                 : " has no version yet: wait for its draws")),
                      "NO_DRAWS");
  }
};

Versions::Versions(const Clock* clock, Executor* executor, StateWriter* writer, StateStore* store,
                   const StoredState& stored)
    : state_(std::make_shared<State>(clock, executor, writer, store)) {
  MutexLock lock(&state_->mutex);
  for (const StoredJob& job : stored.jobs) {
    JobVersions& versions = state_->jobs[job.row.id];
    versions.newest = job.newest_version;
    versions.draws_at_last = job.newest_version ? job.newest_version->num_draws() : 0;
    versions.last_at = clock->Monotonic();
  }
  for (const StoredAlias& alias : stored.aliases) {
    state_->PutAlias({alias.alias, std::make_shared<const Version>(alias.version)});
  }
}

Versions::~Versions() = default;

void Versions::OnChange(std::function<void(const std::string& job)> changed) { state_->changed = std::move(changed); }

void Versions::OnProgress(JobProgress progress) {
  MutexLock lock(&state_->mutex);
  const auto [job, is_new] = state_->jobs.try_emplace(progress.job);
  if (is_new) job->second.last_at = state_->clock->Monotonic();
  job->second.progress = std::move(progress);
  state_->MakeIfDue(&job->second);
}

void Versions::Keep(const Version& version) {
  MutexLock lock(&state_->mutex);
  if (JobVersions* job = state_->Find(version.job)) state_->Keep(job, version);
}

void Versions::Forget(const std::string& job) {
  MutexLock lock(&state_->mutex);
  std::erase_if(state_->aliases, [&](const auto& alias) { return alias.second == job; });
  state_->jobs.erase(job);
}

VersionNames Versions::NamesOf(const std::string& id) const {
  MutexLock lock(&state_->mutex);
  VersionNames names;
  const JobVersions* job = state_->Find(id);
  if (job == nullptr) return names;
  if (job->newest) names.newest = job->newest->number;
  for (const auto& [name, named] : job->aliases) names.aliases.push_back(name);
  return names;
}

std::vector<int64_t> Versions::DrawsHeld(const std::string& id, size_t chains) const {
  std::vector<int64_t> held(chains);
  MutexLock lock(&state_->mutex);
  const JobVersions* job = state_->Find(id);
  if (job == nullptr) return held;
  for (const auto& [name, named] : job->aliases) {
    for (size_t i = 0; i < chains; ++i) held[i] = std::max(held[i], named.version->DrawsOf(static_cast<int32_t>(i)));
  }
  return held;
}

void Versions::Pin(const std::string& job, int64_t number, bool refresh, const Reply<Version>& done) {
  if (const auto known = state_->Known(job, number, refresh)) return Send<Version>(state_->executor, done, *known);
  if (number == 0) return Create(job, done);
  state_->executor->Schedule([store = state_->store, job, number, done] { done(store->FindVersion(job, number)); });
}

void Versions::Create(const std::string& job, const Reply<Version>& done) {
  state_->writer->Write<Version>(change::CreateVersion{job}, done, [state = state_](const ApplyResult& result) {
    state->Made(*result.version);
    return *result.version;
  });
}

void Versions::Delete(const std::string& id, int64_t number, const Reply<bool>& done) {
  state_->writer->Write<bool>(change::DeleteVersion{id, number}, done,
                              [state = state_, id, number](const ApplyResult& result) {
                                {
                                  MutexLock lock(&state->mutex);
                                  JobVersions* job = state->Find(id);
                                  // A version that was made meanwhile is newer than the result.
                                  if (job != nullptr && job->newest && job->newest->number == number) {
                                    job->newest = result.version;
                                  }
                                }
                                state->Changed(id);
                                return true;
                              });
}

void Versions::SetAlias(const Alias& alias, const Reply<Alias>& done) {
  if (const absl::Status valid = CheckAlias(alias); !valid.ok()) {
    return Send<Alias>(state_->executor, done, valid);
  }
  const auto set = [state = state_, done](const Alias& named) {
    state->writer->Write<Alias>(change::SetAlias{named}, done, [state, named](const ApplyResult& result) {
      state->MoveAlias(named, *result.version);
      return named;
    });
  };
  if (alias.number > 0) return set(alias);
  Pin(alias.job, 0, /*refresh=*/true, [set, alias, done](const absl::StatusOr<Version>& newest) {
    if (!newest.ok()) return done(newest.status());
    set({alias.tenant, alias.name, alias.job, newest->number});
  });
}

void Versions::DeleteAlias(const std::string& tenant, const std::string& name, const Reply<bool>& done) {
  state_->writer->Write<bool>(change::DeleteAlias{tenant, name}, done,
                              [state = state_, tenant, name](const ApplyResult&) {
                                std::string job;
                                {
                                  MutexLock lock(&state->mutex);
                                  job = state->ForgetAlias(tenant, name);
                                }
                                state->Changed(job);
                                return true;
                              });
}

std::optional<NamedVersion> Versions::FindAlias(const std::string& tenant, const std::string& name) const {
  MutexLock lock(&state_->mutex);
  const auto found = state_->aliases.find({tenant, name});
  if (found == state_->aliases.end()) return std::nullopt;
  return state_->jobs.at(found->second).aliases.at(name);
}

absl::StatusOr<Page<Alias>> Versions::ListAliases(const std::string& tenant, int32_t page_size,
                                                  const std::string& page_token) const {
  const auto limit = static_cast<size_t>(ClampPageSize(page_size));
  const std::string arguments = absl::StrCat("aliases ", tenant);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string after, CursorOf(arguments, page_token));
  MutexLock lock(&state_->mutex);
  Page<Alias> page;
  for (auto i = state_->aliases.upper_bound({tenant, after}); i != state_->aliases.end(); ++i) {
    if (i->first.first != tenant) break;
    if (page.items.size() == limit) {
      page.next_page_token = MakePageToken(arguments, page.items.back().name);
      break;
    }
    page.items.push_back(state_->jobs.at(i->second).aliases.at(i->first.second).alias);
  }
  return page;
}

std::vector<Alias> Versions::AliasesOf(const std::string& id) const {
  MutexLock lock(&state_->mutex);
  std::vector<Alias> aliases;
  if (const JobVersions* job = state_->Find(id)) {
    for (const auto& [name, named] : job->aliases) aliases.push_back(named.alias);
  }
  return aliases;
}

void Versions::MarkCorrupt(const std::string& job, const std::string& object, const Reply<bool>& done) {
  state_->writer->Write<bool>(change::MarkCorrupt{job, object, true}, done, [](const ApplyResult&) { return true; });
}

}  // namespace chainfleet
