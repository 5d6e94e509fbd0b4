#include "server/control/scheduling_plan.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/base/limits.h"
#include "server/control/preemption.h"

namespace chainfleet {
namespace {

constexpr size_t kBatch = limits::kStateWriterBatch;

// A plan under construction. A granted chain counts in later steps as if its lease were in the tables.
struct Draft {
  const SchedulingTables& tables;
  absl::Duration now, lease_ttl;
  FairShare shares;  // includes the granted chains
  SchedulingPlan plan;
  std::vector<FreeSlots> free;                           // workers that may get more chains, full ones too; by id
  std::unordered_map<const ChainEntry*, Lease> granted;  // the leases that the grants become

  bool IsUsable(const WorkerEntry& worker) const { return worker.IsUsable(now, lease_ttl); }

  bool HasWorkerFor(const std::string& tenant) const {
    return std::ranges::any_of(tables.fleet.workers(), [&](const auto& entry) {
      return IsUsable(entry.second) && entry.second.admission.Admits(tenant);
    });
  }

  bool MayStart(const ChainEntry& chain) {
    if (chain.not_before > now) {
      plan.next_attempt = std::min(plan.next_attempt.value_or(chain.not_before), chain.not_before);
    }
    return chain.not_before <= now && !chain.in_flight && !granted.contains(&chain);
  }

  const Lease* FindLease(const ChainEntry& chain) const {
    const auto found = granted.find(&chain);
    return found == granted.end() ? tables.leases.Find(chain.row.id) : &found->second;
  }

  FreeSlots* FindFree(const std::string& worker) {
    const auto found = std::ranges::lower_bound(free, worker, {}, &FreeSlots::worker);
    return found == free.end() || found->worker != worker ? nullptr : &*found;
  }

  void Grant(const JobEntry& job, const Assignment& grant) {
    shares.Hold(job.row.tenant, tables.fleet.Find(grant.worker)->devices_per_slot(), now);
    if (FreeSlots* place = FindFree(grant.worker)) place->Take(1, job.chain_bytes());
    const Lease lease{.chain = grant.chain, .worker = grant.worker, .bytes = job.chain_bytes()};
    granted.emplace(&job.chains[static_cast<size_t>(grant.chain.index)], lease);
    plan.grants.push_back(grant);
  }
};

// A turn lasts while its chain is a suspect that waits for its worker or is leased to it.
bool Lasts(const Draft& draft, const std::string& worker, const SoloTurns::Turn& turn) {
  const ChainEntry* chain = draft.tables.jobs.Find(turn.chain);
  if (chain == nullptr || !chain->row.suspect()) return false;
  const Lease* lease = draft.tables.leases.Find(turn.chain);
  if (turn.began) return lease != nullptr && lease->worker == worker;
  const WorkerEntry* entry = draft.tables.fleet.Find(worker);
  const JobEntry& job = *draft.tables.jobs.Find(turn.chain.job);
  return entry != nullptr && draft.IsUsable(*entry) && job.suspects.contains(turn.chain.index);
}

void EndTurns(Draft* draft) {
  draft->plan.turns.ForgetRests(draft->now);
  for (const auto& [worker, turn] : draft->tables.turns.turns()) {
    if (!Lasts(*draft, worker, turn)) draft->plan.turns.End(worker, draft->now + limits::kSoloRest);
  }
}

// Ends chains whose point has the requested successes or draws. Their draws are served, and they make no more.
void RetireSurplus(Draft* draft) {
  for (const auto& [place, job] : draft->tables.jobs.surplus_queue()) {
    for (const int32_t index : job->surplus) {
      if (draft->plan.retirements.size() == kBatch) return;
      const ChainEntry& chain = job->chains[static_cast<size_t>(index)];
      if (chain.in_flight) continue;
      const auto stopped = job->row.stopped.find(PointOf(job->row.plan->spec, index));
      const bool by_rule = stopped != job->row.stopped.end();
      draft->plan.retirements.push_back(
          {chain.row.id, by_rule ? stopped->second : "as many chains succeeded as the job asks for"});
    }
  }
}

std::vector<SuspectChain> FindWaitingSuspects(Draft* draft, size_t limit) {
  std::vector<SuspectChain> waiting;
  for (const auto& [place, job] : draft->tables.jobs.suspect_queue()) {
    if (!draft->HasWorkerFor(job->row.tenant)) continue;
    for (const int32_t index : job->suspects) {
      if (waiting.size() >= limit) return waiting;
      const ChainEntry& chain = job->chains[static_cast<size_t>(index)];
      if (draft->MayStart(chain) && !draft->plan.turns.HasTurn(chain.row.id)) {
        waiting.push_back({chain.row.id, chain.avoided_worker, job->row.tenant});
      }
    }
  }
  return waiting;
}

// A resting worker is left to other chains, unless it is empty and no other chain waits.
std::vector<SoloWorker> FindWorkersForTurns(const Draft& draft) {
  std::vector<SoloWorker> workers;
  for (const auto& [id, worker] : draft.tables.fleet.workers()) {
    if (!draft.IsUsable(worker) || draft.plan.turns.Keeps(id)) continue;
    const int32_t chains = draft.tables.leases.NumOfWorker(id);
    const bool unneeded = chains == 0 && draft.tables.jobs.queue().empty();
    if (unneeded || !draft.plan.turns.Rests(id, draft.now)) workers.push_back({id, chains, worker.admission});
  }
  return workers;
}

void PlanTurns(Draft* draft) {
  if (draft->tables.jobs.suspect_queue().empty()) return;
  SoloTurns& turns = draft->plan.turns;
  const auto usable = std::ranges::count_if(draft->tables.fleet.workers(),
                                            [draft](const auto& entry) { return draft->IsUsable(entry.second); });
  const int32_t open = MaxSoloWorkers(static_cast<int32_t>(usable)) - static_cast<int32_t>(turns.turns().size());
  if (open <= 0) return;
  const std::vector<SuspectChain> waiting = FindWaitingSuspects(draft, static_cast<size_t>(open));
  if (waiting.empty()) return;
  for (const Assignment& a : AssignAlone(waiting, FindWorkersForTurns(*draft))) {
    turns.Plan(a.worker, a.chain);
    draft->plan.cleared.push_back(a.worker);
  }
}

void BeginTurns(Draft* draft) {
  const SchedulingTables& tables = draft->tables;
  for (const auto& [id, turn] : draft->plan.turns.turns()) {
    if (turn.began || tables.leases.NumOfWorker(id) > 0 || tables.fleet.Find(id)->chains_listed > 0) continue;
    if (!draft->MayStart(*tables.jobs.Find(turn.chain))) continue;
    draft->plan.turns.Begin(id, turn.chain);
    draft->Grant(*tables.jobs.Find(turn.chain.job), {turn.chain, id});
  }
}

std::vector<FreeSlots> FindFreeSlots(const Draft& draft) {
  std::vector<FreeSlots> free;
  for (const auto& [id, worker] : draft.tables.fleet.workers()) {
    if (!draft.IsUsable(worker) || draft.plan.turns.Keeps(id)) continue;
    const int32_t chains = draft.tables.leases.NumOfWorker(id);
    FreeSlots& place = free.emplace_back(
        FreeSlots{id, std::max(0, worker.chain_slots - chains), worker.host, std::nullopt, chains, worker.admission});
    if (worker.memory_bytes > 0) place.bytes = worker.memory_bytes - draft.tables.leases.BytesOfWorker(id);
  }
  return free;
}

// A yielding chain makes room for chains of its tier or a higher one, so the free slots of its worker are kept for
// them.
void CloseForLowerTiers(const SchedulingTables& tables, Priority tier, Placement* placement) {
  for (const ChainId& id : tables.leases.preempted()) {
    const JobEntry* job = tables.jobs.Find(id.job);
    if (job != nullptr && job->priority() >= tier) placement->Close(tables.leases.Find(id)->worker);
  }
}

void GrantSome(const JobEntry& job, size_t limit, Draft* draft, Placement* placement) {
  if (!placement->MayFit(job.chain_bytes(), job.row.tenant)) return;
  QueuedJob queued{job.row.id, job.row.tenant, {}, {}, job.chain_bytes()};
  for (const int32_t index : job.pending) {
    const ChainEntry& chain = job.chains[static_cast<size_t>(index)];
    if (queued.chains.size() < limit && draft->MayStart(chain)) queued.chains.push_back({index, chain.avoided_worker});
  }
  if (queued.chains.empty()) return;
  for (const ChainEntry& chain : job.chains) {
    if (const Lease* lease = draft->FindLease(chain)) ++queued.held[lease->worker];
  }
  for (const Assignment& a : placement->Place(queued)) draft->Grant(job, a);
}

// Grants until the plan has `end` grants.
void GrantTenant(const JobsByAge& by_age, size_t end, Draft* draft, Placement* placement) {
  for (const auto& [sequence, job] : by_age) {
    if (draft->plan.grants.size() == end || placement->slots() == 0) break;
    GrantSome(*job, end - draft->plan.grants.size(), draft, placement);
  }
}

// Serves each tenant its part first. A chain may fit nowhere, so the rest goes to any tenant with a chain that fits.
void GrantTier(const TenantQueue& tier, size_t end, Draft* draft, Placement* placement) {
  const std::vector<Assignment>& grants = draft->plan.grants;
  const int64_t slots = std::min(static_cast<int64_t>(end - grants.size()), placement->slots());
  std::vector<FairShare::Claim> claims;
  for (const auto& [tenant, by_age] : tier) {
    int64_t waiting = 0;
    for (auto job = by_age.begin(); job != by_age.end() && waiting < slots; ++job) {
      waiting += static_cast<int64_t>(job->second->pending.size());
    }
    claims.push_back({tenant, waiting});
  }
  double devices = 0, all_slots = 0;
  for (const auto& [id, worker] : draft->tables.fleet.workers()) {
    devices += worker.num_devices;
    all_slots += worker.chain_slots;
  }
  const auto parts = draft->shares.Divide(std::move(claims), slots, devices / std::max(1.0, all_slots), draft->now);
  for (const FairShare::Claim& part : parts) {
    GrantTenant(tier.at(part.tenant), grants.size() + static_cast<size_t>(part.chains), draft, placement);
  }
  for (const FairShare::Claim& part : parts) GrantTenant(tier.at(part.tenant), end, draft, placement);
}

void GrantInOrder(Draft* draft) {
  draft->free = FindFreeSlots(*draft);
  Placement placement(draft->free);
  const size_t end = draft->plan.grants.size() + kBatch;
  for (const auto& [priority, tier] : draft->tables.jobs.queue()) {
    CloseForLowerTiers(draft->tables, priority, &placement);
    if (draft->plan.grants.size() == end || placement.slots() == 0) break;
    GrantTier(tier, end, draft, &placement);
  }
  if (draft->plan.grants.size() == end) draft->plan.again = draft->now + limits::kPolicyInterval;
}

std::vector<WaitingChains> FindWaitingAbove(Priority tier, Draft* draft) {
  std::vector<WaitingChains> waiting;
  int32_t left = limits::kStateWriterBatch;
  for (const auto& [priority, tenants] : draft->tables.jobs.queue()) {
    if (priority <= tier) break;
    for (const auto& [tenant, by_age] : tenants) {
      for (auto job = by_age.begin(); job != by_age.end() && left > 0; ++job) {
        WaitingChains wanted{priority, 0, job->second->chain_bytes(), tenant};
        for (const int32_t index : job->second->pending) {
          const ChainEntry& chain = job->second->chains[static_cast<size_t>(index)];
          wanted.count += wanted.count < left && draft->MayStart(chain) ? 1 : 0;
        }
        left -= wanted.count;
        if (wanted.count > 0) waiting.push_back(wanted);
      }
    }
  }
  return waiting;
}

// Returns chains of lower tiers in the order in which they yield: lowest tier first, then youngest job. Adds the room
// of chains that already leave to the free slots.
std::vector<RunningChain> FindRunningBelow(Priority tier, Draft* draft) {
  std::vector<RunningChain> chains;
  const JobQueue& running = draft->tables.jobs.running();
  for (auto job = running.rbegin(); job != running.rend() && job->first.priority < tier; ++job) {
    for (auto chain = job->second->chains.rbegin(); chain != job->second->chains.rend(); ++chain) {
      const Lease* lease = draft->FindLease(*chain);
      FreeSlots* place = lease == nullptr ? nullptr : draft->FindFree(lease->worker);
      if (place == nullptr) continue;
      if (lease->stopping() || lease->ending) {
        place->Take(-1, -lease->bytes);
      } else {
        chains.push_back({lease->chain, lease->worker, job->first.priority, lease->bytes});
      }
    }
  }
  return chains;
}

// Decides anew each time, from the chains that wait now. A yielding chain commits a resume point first and then waits
// like any other, without counting an attempt. A yield that the worker was told of is never withdrawn.
void Preempt(Draft* draft) {
  std::set<ChainId>& yields = draft->plan.yields;
  for (const ChainId& id : draft->tables.leases.preempted()) {
    if (draft->tables.leases.Find(id)->stopping()) yields.insert(id);
  }
  const JobQueue& running = draft->tables.jobs.running();
  if (running.empty()) return;
  const std::vector<WaitingChains> waiting = FindWaitingAbove(running.rbegin()->first.priority, draft);
  if (waiting.empty()) return;
  const std::vector<RunningChain> below = FindRunningBelow(waiting.front().tier, draft);
  for (const ChainId& id : ChooseYielding(waiting, below, draft->free)) yields.insert(id);
}

}  // namespace

SchedulingPlan Decide(const SchedulingTables& tables, absl::Duration now, absl::Duration lease_ttl) {
  Draft draft{tables, now, lease_ttl, tables.shares, {.turns = tables.turns}, {}, {}};
  EndTurns(&draft);
  if (tables.jobs.anything_waits()) {
    if (now < tables.fleet.settles()) {
      draft.plan.yields = tables.leases.preempted();
      draft.plan.again = tables.fleet.settles();
      return std::move(draft.plan);
    }
    RetireSurplus(&draft);
    PlanTurns(&draft);
    BeginTurns(&draft);
    GrantInOrder(&draft);
  }
  Preempt(&draft);
  return std::move(draft.plan);
}

}  // namespace chainfleet
