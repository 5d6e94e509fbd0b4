#include "server/control/job_table.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/saturating.h"
#include "core/domain/chain_memory.h"
#include "core/domain/no_such.h"

namespace chainfleet {
namespace {

// As a name, it stands for every job of a tenant. CheckName allows no such name for a job.
constexpr char kLatest[] = "@latest";

// Adds the chain to the sums of its job (`sign` 1), or takes it out of them (-1) before it changes.
void CountChain(const ChainRow& row, int64_t sign, JobEntry* job) {
  job->num_draws += sign * row.num_draws;
  job->num_steps += sign * row.step;
  if ((job->num_in_state[row.state] += sign) == 0) job->num_in_state.erase(row.state);
}

// Moves the chain to the index set that it belongs to now, if to any.
void SortChain(const ChainRow& row, JobEntry* job) {
  const int32_t index = row.id.index;
  for (std::set<int32_t>* indices : {&job->pending, &job->suspects, &job->surplus}) indices->erase(index);
  if (row.state != ChainState::kPending || job->row.intent != JobIntent::kRun) return;
  (job->HasEnough(index) ? job->surplus : row.suspect() ? job->suspects : job->pending).insert(index);
}

void UpdateIndex(const JobIndex::key_type& key, JobEntry* job, bool add, JobIndex* index) {
  std::map<int64_t, JobEntry*>& jobs = (*index)[key];
  if (add) {
    jobs[job->row.sequence] = job;
  } else {
    jobs.erase(job->row.sequence);
  }
  if (jobs.empty()) index->erase(key);
}

}  // namespace

JobEntry* JobTable::Add(StoredJob stored) {
  JobEntry job;
  const JobPlan& plan = *stored.row.plan;
  job.total_steps = PlanSteps(plan.spec, plan.dataset ? plan.dataset->num_rows : 1).total_steps;
  const Dataset data = plan.dataset.value_or(Dataset());
  job.estimated_bytes =
      EstimateChainBytes(plan.spec, data.input_shape, NumClasses(data.targets), StoredOf(plan), data.num_rows);
  job.draw_bytes = EstimateDrawBytes(plan);
  job.row = std::move(stored.row);
  for (ChainRow& row : stored.chains) {
    ChainEntry& chain = job.chains.emplace_back();
    chain.row = std::move(row);
    chain.reported_step = chain.row.step;
    CountChain(chain.row, 1, &job);
  }
  const std::string id = job.row.id;
  JobEntry* entry = &jobs_.insert_or_assign(id, std::move(job)).first->second;
  by_age_[entry->row.sequence] = entry;
  Index(entry, true);
  Derive(entry);
  Count(*entry, 1);
  return entry;
}

void JobTable::Update(const JobRow& row) {
  JobEntry* job = Find(row.id);
  if (job == nullptr) return;
  Count(*job, -1);
  Index(job, false);
  job->row = row;
  Index(job, true);
  Count(*job, 1);
  Derive(job);
}

void JobTable::Update(const ChainRow& row) {
  JobEntry* job = Find(row.id.job);
  if (job == nullptr || row.id.index < 0 || static_cast<size_t>(row.id.index) > job->chains.size()) return;
  const bool is_new = static_cast<size_t>(row.id.index) == job->chains.size();
  Count(*job, -1);
  if (is_new) job->chains.emplace_back();
  ChainEntry* chain = Find(row.id);
  if (!is_new) CountChain(chain->row, -1, job);
  CountChain(row, 1, job);
  Count(*job, 1);
  const ChainState before = chain->row.state;
  const bool moved = is_new || before != row.state || chain->row.suspect() != row.suspect();
  const bool success = before == ChainState::kSucceeded || row.state == ChainState::kSucceeded;
  chain->row = row;
  // Steps that the last holder had in memory are lost with its lease.
  if (row.state != ChainState::kLeased || chain->reported_step < row.step) chain->reported_step = row.step;
  if (moved && success && job->row.plan->spec.scheduling.success_chains) {
    Derive(job);  // the point may have enough now, which moves its other chains
  } else if (moved) {
    SortChain(row, job);
    DeriveState(job);
  }
  ++job->version;
}

void JobTable::DeriveState(JobEntry* job) {
  std::vector<ChainState> states;  // each once: the job's state does not depend on the number of chains in a state
  for (const auto& [state, num] : job->num_in_state) states.push_back(state);
  job->state = DeriveJobState(job->row.intent, states, std::ranges::all_of(job->enough, std::identity()));
  ++job->version;
  const auto list = [job](bool waits, JobQueue* queue) {
    const QueuePlace place{job->priority(), job->row.sequence};
    if (waits) {
      (*queue)[place] = job;
    } else {
      queue->erase(place);
    }
  };
  Queue(job, !job->pending.empty());
  list(!job->suspects.empty(), &suspect_queue_);
  list(!job->surplus.empty(), &surplus_queue_);
  list(job->num_in_state.contains(ChainState::kLeased), &running_);
}

void JobTable::Queue(JobEntry* job, bool waits) {
  TenantQueue& tier = queue_[job->priority()];
  JobsByAge& of_tenant = tier[job->row.tenant];
  if (waits) {
    of_tenant[job->row.sequence] = job;
  } else {
    of_tenant.erase(job->row.sequence);
  }
  if (of_tenant.empty()) tier.erase(job->row.tenant);
  if (tier.empty()) queue_.erase(job->priority());
}

void JobTable::Derive(JobEntry* job) {
  const JobSpec& spec = job->row.plan->spec;
  std::vector<int64_t> succeeded(static_cast<size_t>(NumPoints(spec.sweep)));
  for (const ChainEntry& chain : job->chains) {
    if (chain.row.state == ChainState::kSucceeded) ++succeeded[static_cast<size_t>(PointOf(spec, chain.row.id.index))];
  }
  const int64_t needed = spec.scheduling.success_chains.value_or(std::numeric_limits<int64_t>::max());
  job->enough.clear();
  for (const int64_t count : succeeded) {
    const auto point = static_cast<int32_t>(job->enough.size());
    job->enough.push_back(count >= needed || job->row.stopped.contains(point));
  }
  for (const ChainEntry& chain : job->chains) SortChain(chain.row, job);
  DeriveState(job);
}

void JobTable::Index(JobEntry* job, bool add) {
  const JobRow& row = job->row;
  UpdateIndex({row.tenant, row.plan->spec.name}, job, add, &by_name_);
  UpdateIndex({row.tenant, kLatest}, job, add, &by_name_);
  if (!row.request_id.empty()) UpdateIndex({row.tenant, row.request_id}, job, add, &by_request_);
}

void JobTable::Count(const JobEntry& job, int64_t sign) {
  if (job.row.intent == JobIntent::kDelete) return;
  const int64_t chains = sign * static_cast<int64_t>(job.chains.size());
  TenantJobs& sums = of_tenants_[job.row.tenant];
  sums.jobs += sign;
  sums.kept_chains += chains;
  if (!job.row.finished_at) sums.chains += chains;
  sums.draw_bytes += sign * SaturatingMultiply(job.num_draws, job.draw_bytes);
  if (sums.jobs == 0) of_tenants_.erase(job.row.tenant);
}

TenantJobs JobTable::OfTenant(const std::string& tenant) const {
  const auto found = of_tenants_.find(tenant);
  return found == of_tenants_.end() ? TenantJobs() : found->second;
}

void JobTable::Remove(const std::string& id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  Count(found->second, -1);
  Index(&found->second, false);
  const JobRow& row = found->second.row;
  Retire({row.tenant, row.plan->spec.name, row.sequence});
  const QueuePlace place{found->second.priority(), row.sequence};
  by_age_.erase(place.sequence);
  Queue(&found->second, false);
  for (JobQueue* queue : {&suspect_queue_, &surplus_queue_, &running_}) queue->erase(place);
  jobs_.erase(found);
}

const JobEntry* JobTable::Find(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

const ChainEntry* JobTable::Find(const ChainId& id) const {
  const JobEntry* job = Find(id.job);
  if (job == nullptr || id.index < 0 || static_cast<size_t>(id.index) >= job->chains.size()) return nullptr;
  return &job->chains[static_cast<size_t>(id.index)];
}

absl::StatusOr<JobEntry*> JobTable::Resolve(const std::string& tenant, const std::string& name) {
  if (JobEntry* job = Find(name); job != nullptr && job->row.tenant == tenant) return job;
  const auto named = by_name_.find({tenant, name});
  if (named == by_name_.end()) return NoSuch("job", name);
  const auto retired = retired_.find({tenant, name});
  bool deleted = false;  // the newest job of this name
  for (auto entry = named->second.rbegin(); entry != named->second.rend(); ++entry) {
    JobEntry* const job = entry->second;
    if (retired != retired_.end() && job->row.sequence < retired->second) deleted = true;
    if (job->row.intent == JobIntent::kDelete) {
      deleted = name != kLatest;
      continue;
    }
    if (!deleted) return job;
    return WithReason(absl::NotFoundError(absl::StrCat("the newest job ", name, " was deleted; ", job->row.id,
                                                       " is an older one of this name: ask for it by its id")),
                      "JOB_NOT_FOUND");
  }
  return NoSuch("job", name);
}

bool JobTable::HasJobOfRequest(const std::string& tenant, const std::string& request_id) const {
  const auto found = by_request_.find({tenant, request_id});
  return found != by_request_.end() && std::ranges::any_of(found->second, [](const auto& entry) {
           return entry.second->row.intent != JobIntent::kDelete;
         });
}

void JobTable::Retire(const RetiredName& name) {
  int64_t& newest = retired_[{name.tenant, name.name}];
  newest = std::max(newest, name.sequence);
}

ListedJob ListedOf(const JobEntry& job, int64_t newest_version) {
  ListedJob listed{job.row, job.state, newest_version, job.num_draws};
  listed.total_steps = SaturatingMultiply(job.total_steps, static_cast<int64_t>(job.chains.size()));
  for (const ChainEntry& chain : job.chains) {
    const bool failed = chain.row.state == ChainState::kFailed || chain.row.state == ChainState::kDiverged;
    listed.step += chain.reported_step;
    listed.has_usable_draws = listed.has_usable_draws || (chain.row.num_draws > 0 && !failed);
  }
  return listed;
}

JobView ViewOf(const JobEntry& job, VersionNames versions) {
  JobView view{ListedOf(job, versions.newest), {}, std::move(versions.aliases)};
  view.chains.reserve(job.chains.size());
  for (const ChainEntry& chain : job.chains) {
    const ChainRow& row = chain.row;
    view.chains.push_back({row.id, row.state, chain.reported_step, job.total_steps, row.num_draws, chain.stats,
                           row.state == ChainState::kLeased ? row.worker : "", row.lease_epoch, row.attempts,
                           row.reason});
  }
  return view;
}

}  // namespace chainfleet
