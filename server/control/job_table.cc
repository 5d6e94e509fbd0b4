#include "server/control/job_table.h"

#include <algorithm>
#include <utility>

namespace chainfleet {

JobEntry* JobTable::Add(StoredJob stored) {
  JobEntry job;
  const JobPlan& plan = *stored.row.plan;
  job.total_steps = PlanSteps(plan.spec, plan.dataset ? plan.dataset->num_rows : 1).total_steps;
  job.row = std::move(stored.row);
  job.newest_snapshot = std::move(stored.newest_snapshot);
  for (ChainRow& row : stored.chains) {
    ChainEntry& chain = job.chains.emplace_back();
    chain.row = std::move(row);
    chain.reported_step = chain.row.step;
  }
  const std::string id = job.row.id;
  JobEntry* entry = &jobs_.insert_or_assign(id, std::move(job)).first->second;
  by_age_[entry->row.sequence] = entry;
  Derive(entry);
  return entry;
}

void JobTable::Update(const JobRow& row) {
  JobEntry* job = Find(row.id);
  if (job == nullptr) return;
  job->row = row;
  Derive(job);
}

void JobTable::Update(const ChainRow& row) {
  ChainEntry* chain = Find(row.id);
  if (chain == nullptr) return;
  const bool moved = chain->row.state != row.state;
  chain->row = row;
  // What the last holder had in memory is lost when its lease is.
  if (row.state != ChainState::kLeased || chain->reported_step < row.step) chain->reported_step = row.step;
  JobEntry* job = Find(row.id.job);
  if (moved) Derive(job);
  ++job->version;
}

void JobTable::Derive(JobEntry* job) {
  std::vector<ChainState> states;
  job->pending.clear();
  job->suspects.clear();
  for (const ChainEntry& chain : job->chains) {
    states.push_back(chain.row.state);
    if (chain.row.state == ChainState::kPending && job->row.intent == JobIntent::kRun) {
      (chain.row.suspect() ? job->suspects : job->pending).insert(chain.row.id.index);
    }
  }
  job->state = DeriveJobState(job->row.intent, states);
  ++job->version;
  const auto list = [job](const std::set<int32_t>& chains, std::map<int64_t, JobEntry*>* queue) {
    if (chains.empty()) {
      queue->erase(job->row.sequence);
    } else {
      (*queue)[job->row.sequence] = job;
    }
  };
  list(job->pending, &queue_);
  list(job->suspects, &suspect_queue_);
}

void JobTable::Remove(const std::string& id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  by_age_.erase(found->second.row.sequence);
  queue_.erase(found->second.row.sequence);
  suspect_queue_.erase(found->second.row.sequence);
  jobs_.erase(found);
}

JobEntry* JobTable::Find(const std::string& id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

ChainEntry* JobTable::Find(const ChainId& id) {
  JobEntry* job = Find(id.job);
  if (job == nullptr || id.index < 0 || static_cast<size_t>(id.index) >= job->chains.size()) return nullptr;
  return &job->chains[static_cast<size_t>(id.index)];
}

JobEntry* JobTable::Resolve(const std::string& name) {
  if (JobEntry* job = Find(name)) return job;
  const auto newest = std::find_if(by_age_.rbegin(), by_age_.rend(), [&](const auto& entry) {
    const JobRow& row = entry.second->row;
    return row.intent != JobIntent::kDelete && (name == "@latest" || row.plan->spec.name == name);
  });
  return newest == by_age_.rend() ? nullptr : newest->second;
}

JobView ViewOf(const JobEntry& job) {
  JobView view;
  view.id = job.row.id;
  view.plan = job.row.plan;
  view.intent = job.row.intent;
  view.state = job.state;
  view.created_at = job.row.created_at;
  view.finished_at = job.row.finished_at;
  view.newest_version = job.newest_snapshot ? job.newest_snapshot->number : 0;
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
