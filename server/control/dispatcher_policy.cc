#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "server/control/dispatcher_impl.h"

namespace chainfleet {

void Dispatcher::Core::RunPolicy() {
  policy_due = false;
  next_attempt.reset();
  next_policy = now + limits::kPolicyInterval;
  EndTurns();
  if (!jobs.anything_waits()) return Preempt();  // nobody has to give way any more
  if (now < fleet_settles) {
    policy_due = true;
    next_policy = fleet_settles;
    return;
  }
  RetireSurplus();
  PlanTurns();
  BeginTurns();
  policy_due = GrantInOrder(limits::kStateWriterBatch) == limits::kStateWriterBatch || policy_due;
  Preempt();
}

bool Dispatcher::Core::IsUsable(const WorkerEntry& worker) const {
  return !worker.draining && worker.chain_slots > 0 && worker.last_sync + options.lease_ttl >= now;
}

bool Dispatcher::Core::MayStart(const ChainEntry& chain) {
  if (chain.not_before > now) next_attempt = std::min(next_attempt.value_or(chain.not_before), chain.not_before);
  return chain.not_before <= now && !chain.in_flight;
}

// A turn lasts while its chain is a suspect and waits for its worker or is leased to it.
void Dispatcher::Core::EndTurns() {
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

std::vector<SuspectChain> Dispatcher::Core::WaitingSuspects(size_t limit) {
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
std::vector<SoloWorker> Dispatcher::Core::WorkersForTurns() {
  std::vector<SoloWorker> workers;
  for (const auto& [id, worker] : fleet.workers()) {
    if (!IsUsable(worker) || turns.Keeps(id)) continue;
    const int32_t chains = leases.NumOfWorker(id);
    if (!turns.Rests(id, now) || (chains == 0 && jobs.queue().empty())) workers.push_back({id, chains});
  }
  return workers;
}

void Dispatcher::Core::PlanTurns() {
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

void Dispatcher::Core::BeginTurns() {
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

// Its point has as many successes, or draws, as the job asks for: what it has drawn is served, and that is the end of
// it.
void Dispatcher::Core::RetireSurplus() {
  for (ChainEntry* chain : WaitingSurplus(limits::kStateWriterBatch)) {
    const JobRow& job = jobs.Find(chain->row.id.job)->row;
    const auto stopped = job.stopped.find(PointOf(job.plan->spec, chain->row.id.index));
    const std::string why =
        stopped == job.stopped.end() ? "as many chains succeeded as the job asks for" : stopped->second;
    ChangeChain(chain, change::RetireChain{chain->row.id, why}, [](Core& core, const ApplyResult& result) {
      core.policy_due = core.policy_due || !result.status.ok();
    });
  }
}

std::vector<ChainEntry*> Dispatcher::Core::WaitingSurplus(size_t limit) {
  std::vector<ChainEntry*> waiting;
  for (const auto& [place, job] : jobs.surplus_queue()) {
    for (const int32_t index : job->surplus) {
      if (waiting.size() >= limit) return waiting;
      ChainEntry* chain = &job->chains[static_cast<size_t>(index)];
      if (!chain->in_flight) waiting.push_back(chain);
    }
  }
  return waiting;
}

std::vector<FreeSlots> Dispatcher::Core::FreeFleet() const {
  std::vector<FreeSlots> free;
  for (const auto& [id, worker] : fleet.workers()) {
    if (!IsUsable(worker) || turns.Keeps(id)) continue;
    const int32_t chains = leases.NumOfWorker(id);
    FreeSlots& place =
        free.emplace_back(FreeSlots{id, std::max(0, worker.chain_slots - chains), worker.host, std::nullopt, chains});
    if (worker.memory_bytes > 0) place.bytes = worker.memory_bytes - leases.BytesOfWorker(id);
  }
  return free;
}

size_t Dispatcher::Core::GrantInOrder(size_t limit) {
  Placement placement(FreeFleet());
  size_t granted = 0;
  for (const auto& [priority, tier] : jobs.queue()) {
    CloseForLowerTiers(priority, &placement);
    if (granted == limit || placement.slots() == 0) break;
    granted += GrantTier(tier, limit - granted, &placement);
  }
  return granted;
}

// Where chains of this tier or a higher one give way, one after the other, what is free is kept for whom they do.
void Dispatcher::Core::CloseForLowerTiers(Priority tier, Placement* placement) {
  for (const ChainId& id : preempted) {
    const Lease* lease = leases.Find(id);
    const JobEntry* job = jobs.Find(id.job);
    if (lease == nullptr || !lease->preempted || job == nullptr) continue;
    if (job->priority() >= tier) placement->Close(lease->worker);
  }
}

// Each tenant its part first; then, as a chain may fit nowhere, what is left to whoever has one that fits.
size_t Dispatcher::Core::GrantTier(const TenantQueue& tier, size_t limit, Placement* placement) {
  const int64_t slots = std::min(static_cast<int64_t>(limit), placement->slots());
  std::vector<FairShare::Claim> claims;
  for (const auto& [tenant, by_age] : tier) {
    int64_t waiting = 0;
    for (auto job = by_age.begin(); job != by_age.end() && waiting < slots; ++job) {
      waiting += static_cast<int64_t>(job->second->pending.size());
    }
    claims.push_back({tenant, waiting});
  }
  double devices = 0, all_slots = 0;
  for (const auto& [id, worker] : fleet.workers()) {
    devices += worker.num_devices;
    all_slots += worker.chain_slots;
  }
  const auto parts = shares.Divide(std::move(claims), slots, devices / std::max(1.0, all_slots), now);
  size_t granted = 0;
  for (const FairShare::Claim& part : parts) {
    granted += GrantTenant(tier.at(part.tenant), static_cast<size_t>(part.chains), placement);
  }
  for (const FairShare::Claim& part : parts) granted += GrantTenant(tier.at(part.tenant), limit - granted, placement);
  return granted;
}

size_t Dispatcher::Core::GrantTenant(const std::map<int64_t, JobEntry*>& by_age, size_t limit, Placement* placement) {
  size_t granted = 0;
  for (const auto& [sequence, job] : by_age) {
    if (granted == limit || placement->slots() == 0) break;
    granted += GrantSome(job, limit - granted, placement);
  }
  return granted;
}

size_t Dispatcher::Core::GrantSome(JobEntry* job, size_t limit, Placement* placement) {
  if (!placement->MayFit(job->chain_bytes())) return 0;
  QueuedJob queued{job->row.id, {}, {}, job->chain_bytes()};
  for (const int32_t index : job->pending) {
    const ChainEntry& chain = job->chains[static_cast<size_t>(index)];
    if (queued.chains.size() < limit && MayStart(chain)) queued.chains.push_back({index, chain.shunned_worker});
  }
  if (queued.chains.empty()) return 0;
  for (const ChainEntry& chain : job->chains) {
    if (const Lease* lease = leases.Find(chain.row.id)) ++queued.held[lease->worker];
  }
  const std::vector<Assignment> assignments = placement->Place(queued);
  for (const Assignment& a : assignments) {
    ChainEntry* chain = jobs.Find(a.chain);
    GrantLease(chain, chain->row.lease_epoch + 1, *fleet.Find(a.worker), false);
  }
  return assignments.size();
}

// Decided anew each time, from what waits now. A chain that gives way commits a resume point first and waits like any
// other, which costs it no attempt; one whose worker was told has as good as left.
void Dispatcher::Core::Preempt() {
  const std::vector<ChainId> chosen = ChainsToGiveWay();
  std::set<ChainId> give_way(chosen.begin(), chosen.end());
  for (const ChainId& id : preempted) {
    Lease* lease = leases.Find(id);
    if (lease == nullptr || !lease->preempted) continue;
    lease->preempted = lease->stopping() || give_way.contains(id);
    if (lease->preempted) give_way.insert(id);
  }
  preempted.swap(give_way);
  for (const ChainId& id : preempted) {
    Lease* lease = leases.Find(id);
    if (!std::exchange(lease->preempted, true)) stirred.insert(lease->worker);
  }
}

// Chains that wait in vain take the places of the lowest tier, there of the youngest job.
std::vector<ChainId> Dispatcher::Core::ChainsToGiveWay() {
  const auto lowest = jobs.running().rbegin();
  if (lowest == jobs.running().rend()) return {};
  std::vector<WaitingChains> waiting;
  int32_t left = limits::kStateWriterBatch;
  for (const auto& [priority, tier] : jobs.queue()) {
    if (priority <= lowest->first.priority) break;
    for (const auto& [tenant, by_age] : tier) {
      for (auto job = by_age.begin(); job != by_age.end() && left > 0; ++job) {
        WaitingChains wanted{priority, 0, job->second->chain_bytes()};
        for (const int32_t index : job->second->pending) {
          wanted.count += wanted.count < left && MayStart(job->second->chains[static_cast<size_t>(index)]) ? 1 : 0;
        }
        left -= wanted.count;
        if (wanted.count > 0) waiting.push_back(wanted);
      }
    }
  }
  if (waiting.empty()) return {};
  std::vector<FreeSlots> free = FreeFleet();
  return ChooseYielding(waiting, ChainsBelow(waiting.front().tier, &free), free);
}

std::vector<RunningChain> Dispatcher::Core::ChainsBelow(Priority tier, std::vector<FreeSlots>* free) {
  std::map<std::string, FreeSlots*> workers;
  for (FreeSlots& worker : *free) workers[worker.worker] = &worker;
  std::vector<RunningChain> chains;
  for (auto job = jobs.running().rbegin(); job != jobs.running().rend() && job->first.priority < tier; ++job) {
    for (auto chain = job->second->chains.rbegin(); chain != job->second->chains.rend(); ++chain) {
      const Lease* lease = leases.Find(chain->row.id);
      const auto worker = lease == nullptr ? workers.end() : workers.find(lease->worker);
      if (worker == workers.end()) continue;
      if (!lease->stopping() && !lease->ending) {
        chains.push_back({lease->chain, lease->worker, job->first.priority, lease->bytes});
        continue;
      }
      FreeSlots& soon = *worker->second;
      ++soon.slots;
      --soon.chains;
      if (soon.bytes) *soon.bytes += lease->bytes;
    }
  }
  return chains;
}

}  // namespace chainfleet
