#include <algorithm>

#include "server/control/dispatcher_impl.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kForgetWorkerAfter = absl::Minutes(10);

}  // namespace

void Dispatcher::Impl::RunPolicy() {
  policy_due = false;
  next_attempt.reset();
  next_policy = now + limits::kPolicyInterval;
  EndTurns();
  if (!jobs.anything_waits()) return;
  if (now < fleet_settles) {
    policy_due = true;
    next_policy = fleet_settles;
    return;
  }
  fleet.ForgetSilent(now - kForgetWorkerAfter);
  RetireSurplus();
  PlanTurns();
  BeginTurns();
  GrantInOrder();
  Preempt();
}

bool Dispatcher::Impl::IsUsable(const WorkerEntry& worker) const {
  return !worker.draining && worker.chain_slots > 0 && worker.last_sync + options.lease_ttl >= now;
}

bool Dispatcher::Impl::MayStart(const ChainEntry& chain) {
  if (chain.not_before > now) next_attempt = std::min(next_attempt.value_or(chain.not_before), chain.not_before);
  return chain.not_before <= now && !chain.in_flight;
}

// A turn lasts while its chain is a suspect and waits for its worker or is leased to it.
void Dispatcher::Impl::EndTurns() {
  const auto lasts = [this](const std::string& worker, const SoloTurns::Turn& turn) {
    const ChainEntry* chain = jobs.Find(turn.chain);
    if (chain == nullptr || !chain->row.suspect()) return false;
    const Lease* lease = leases.Find(turn.chain);
    if (turn.began) return lease != nullptr && lease->worker == worker;
    const WorkerEntry* entry = fleet.Find(worker);
    return entry != nullptr && IsUsable(*entry) && jobs.Find(turn.chain.job)->suspects.contains(turn.chain.index);
  };
  turns.ForgetRests(now);
  const auto all = turns.turns();
  for (const auto& [worker, turn] : all) {
    if (!lasts(worker, turn)) turns.End(worker, now + limits::kSoloRest);
  }
}

std::vector<SuspectChain> Dispatcher::Impl::WaitingSuspects(size_t limit) {
  std::vector<SuspectChain> waiting;
  for (const auto& [place, job] : jobs.suspect_queue()) {
    for (const int32_t index : job->suspects) {
      if (waiting.size() >= limit) return waiting;
      const ChainEntry& chain = job->chains[static_cast<size_t>(index)];
      if (MayStart(chain) && !turns.HasTurn(chain.row.id)) waiting.push_back({chain.row.id, chain.shunned_worker});
    }
  }
  return waiting;
}

// A resting worker is for the others; nobody else needs it while it is empty and nothing else waits.
std::vector<SoloWorker> Dispatcher::Impl::WorkersForTurns() {
  std::vector<SoloWorker> workers;
  for (const auto& [id, worker] : fleet.workers()) {
    if (!IsUsable(worker) || turns.Keeps(id)) continue;
    const int32_t chains = leases.NumOfWorker(id);
    if (!turns.Rests(id, now) || (chains == 0 && jobs.queue().empty())) workers.push_back({id, chains});
  }
  return workers;
}

void Dispatcher::Impl::PlanTurns() {
  if (jobs.suspect_queue().empty()) return;
  const auto usable = std::ranges::count_if(fleet.workers(), [this](const auto& w) { return IsUsable(w.second); });
  const int32_t open = MaxSoloWorkers(static_cast<int32_t>(usable)) - static_cast<int32_t>(turns.turns().size());
  if (open <= 0) return;
  const std::vector<SuspectChain> waiting = WaitingSuspects(static_cast<size_t>(open));
  if (waiting.empty()) return;
  for (const Assignment& a : AssignAlone(waiting, WorkersForTurns())) {
    turns.Plan(a.worker, a.chain);
    stirred.insert(a.worker);
  }
}

void Dispatcher::Impl::BeginTurns() {
  const auto all = turns.turns();
  for (const auto& [id, turn] : all) {
    const WorkerEntry* worker = fleet.Find(id);
    if (turn.began || leases.NumOfWorker(id) > 0 || worker->chains_listed > 0) continue;
    ChainEntry* chain = jobs.Find(turn.chain);
    if (!MayStart(*chain)) continue;
    turns.Begin(id, turn.chain);
    GrantLease(chain, chain->row.lease_epoch + 1, *worker, false);
  }
}

// Its point has as many successes as the job asks for: what it has drawn is served, and that is the end of it.
void Dispatcher::Impl::RetireSurplus() {
  std::vector<ChainEntry*> retired;
  for (const auto& [place, job] : jobs.surplus_queue()) {
    for (const int32_t index : job->surplus) {
      ChainEntry* chain = &job->chains[static_cast<size_t>(index)];
      if (!chain->in_flight && retired.size() < limits::kStateWriterBatch) retired.push_back(chain);
    }
  }
  for (ChainEntry* chain : retired) {
    ChangeChain(
        chain, change::RetireChain{chain->row.id, "as many chains succeeded as the job asks for"},
        [](Impl& impl, const ApplyResult& result) { impl.policy_due = impl.policy_due || !result.status.ok(); });
  }
}

void Dispatcher::Impl::GrantInOrder() {
  std::vector<FreeSlots> free;
  int32_t total_free = 0;
  for (const auto& [id, worker] : fleet.workers()) {
    const int32_t slots = worker.chain_slots - leases.NumOfWorker(id);
    if (!IsUsable(worker) || slots <= 0 || turns.Keeps(id)) continue;
    FreeSlots& place = free.emplace_back(FreeSlots{id, slots, worker.host, std::nullopt, slots == worker.chain_slots});
    if (worker.memory_bytes > 0) place.bytes = worker.memory_bytes - leases.BytesOfWorker(id);
    total_free += slots;
  }
  total_free = std::min<int32_t>(total_free, limits::kStateWriterBatch);
  std::vector<QueuedJob> queue;
  int32_t queued = 0;
  for (const auto& [place, job] : jobs.queue()) {
    if (queued >= total_free) break;
    QueuedJob& entry = queue.emplace_back(QueuedJob{job->row.id, {}, {}, job->chain_bytes});
    for (const int32_t index : job->pending) {
      const ChainEntry& chain = job->chains[static_cast<size_t>(index)];
      if (MayStart(chain)) entry.chains.push_back({index, chain.shunned_worker});
    }
    for (const ChainEntry& chain : job->chains) {
      if (const Lease* lease = leases.Find(chain.row.id)) ++entry.held[lease->worker];
    }
    queued += static_cast<int32_t>(entry.chains.size());
  }
  const std::vector<Assignment> assignments = AssignInOrder(queue, free, limits::kStateWriterBatch);
  policy_due = policy_due || assignments.size() == static_cast<size_t>(limits::kStateWriterBatch);
  for (const Assignment& a : assignments) {
    ChainEntry* chain = jobs.Find(a.chain);
    GrantLease(chain, chain->row.lease_epoch + 1, *fleet.Find(a.worker), false);
  }
}

// Chains that wait in vain take the places of the lowest tier, there of the youngest job. A chain that gives way
// commits a resume point first and waits like any other, which costs it no attempt.
void Dispatcher::Impl::Preempt() {
  std::erase_if(preempted, [this](const ChainId& id) {
    const Lease* lease = leases.Find(id);
    return lease == nullptr || !lease->preempted;
  });
  auto lowest = jobs.running().rbegin();
  size_t wanted = 0;
  for (const auto& [place, job] : jobs.queue()) {
    if (lowest == jobs.running().rend() || place.priority <= lowest->first.priority) break;
    for (const int32_t index : job->pending) {
      wanted += MayStart(job->chains[static_cast<size_t>(index)]) ? 1 : 0;
    }
    for (; lowest != jobs.running().rend() && preempted.size() < wanted; ++lowest) {
      if (place.priority <= lowest->first.priority) break;
      PreemptSome(lowest->second, wanted);
    }
  }
}

void Dispatcher::Impl::PreemptSome(JobEntry* job, size_t wanted) {
  for (auto chain = job->chains.rbegin(); chain != job->chains.rend() && preempted.size() < wanted; ++chain) {
    Lease* lease = leases.Find(chain->row.id);
    if (lease == nullptr || lease->preempted || lease->ending || turns.HasTurn(chain->row.id)) continue;
    const WorkerEntry* worker = fleet.Find(lease->worker);
    if (worker == nullptr || !IsUsable(*worker)) continue;
    lease->preempted = true;
    preempted.insert(lease->chain);
    stirred.insert(lease->worker);
  }
}

}  // namespace chainfleet
