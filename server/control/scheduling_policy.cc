#include "server/control/scheduling_policy.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace chainfleet {

namespace {

// The workers with free slots, in the order in which the chains of one job prefer them.
class Candidates {
 public:
  Candidates(const QueuedJob& job, std::map<std::string, FreeSlots>* free) : job_(job), free_(free) {
    for (const auto& [worker, slots] : *free_) {
      workers_[slots.host].push_back(worker);
      on_host_[slots.host] += Held(worker);
    }
    for (const auto& [worker, slots] : *free_) order_.insert(PlaceOf(slots));
  }

  // Takes a slot of the best worker for `chain`; null if none has room for it.
  const FreeSlots* Take(const PendingChain& chain) {
    const FreeSlots* best = nullptr;
    for (const Place& place : order_) {
      const FreeSlots& slots = free_->at(std::get<3>(place));
      if (slots.bytes && *slots.bytes < job_.chain_bytes && !slots.idle) continue;
      if (best == nullptr || slots.worker != chain.shunned_worker) best = &slots;
      if (best->worker != chain.shunned_worker) break;
    }
    if (best != nullptr) Occupy(best->worker);
    return best;
  }

 private:
  using Place = std::tuple<int32_t, int32_t, int32_t, std::string>;  // held by host, by worker, -free, worker

  int32_t Held(const std::string& worker) const {
    const auto held = job_.held.find(worker);
    const auto taken = taken_.find(worker);
    return (held == job_.held.end() ? 0 : held->second) + (taken == taken_.end() ? 0 : taken->second);
  }
  Place PlaceOf(const FreeSlots& slots) const {
    return {on_host_.at(slots.host), Held(slots.worker), -slots.slots, slots.worker};
  }

  void Occupy(const std::string& worker) {
    FreeSlots& slots = free_->at(worker);
    for (const std::string& neighbour : workers_[slots.host]) order_.erase(PlaceOf(free_->at(neighbour)));
    ++on_host_[slots.host];
    ++taken_[worker];
    slots.idle = false;
    if (slots.bytes) *slots.bytes -= job_.chain_bytes;
    --slots.slots;
    for (const std::string& neighbour : workers_[slots.host]) {
      if (const FreeSlots& other = free_->at(neighbour); other.slots > 0) order_.insert(PlaceOf(other));
    }
  }

  const QueuedJob& job_;
  std::map<std::string, FreeSlots>* const free_;
  std::map<std::string, std::vector<std::string>> workers_;  // by host
  std::map<std::string, int32_t> on_host_, taken_;
  std::set<Place> order_;
};

}  // namespace

std::vector<Assignment> AssignInOrder(const std::vector<QueuedJob>& queue, const std::vector<FreeSlots>& free,
                                      int32_t limit) {
  std::map<std::string, FreeSlots> left;
  for (const FreeSlots& slots : free) {
    if (slots.slots > 0) left[slots.worker] = slots;
  }
  std::vector<Assignment> assignments;
  for (const QueuedJob& job : queue) {
    Candidates candidates(job, &left);
    for (const PendingChain& chain : job.chains) {
      if (static_cast<int32_t>(assignments.size()) >= limit) return assignments;
      const FreeSlots* worker = candidates.Take(chain);
      if (worker == nullptr) break;
      assignments.push_back({{job.job, chain.index}, worker->worker});
    }
    std::erase_if(left, [](const auto& entry) { return entry.second.slots == 0; });
    if (left.empty()) break;
  }
  return assignments;
}

std::vector<Assignment> AssignAlone(const std::vector<SuspectChain>& suspects, std::vector<SoloWorker> workers) {
  std::ranges::sort(workers, {}, [](const SoloWorker& w) { return std::tie(w.chains, w.worker); });
  std::vector<Assignment> assignments;
  for (const SuspectChain& suspect : suspects) {
    if (workers.empty()) break;
    auto best = workers.begin();
    if (best->worker == suspect.shunned_worker && workers.size() > 1) ++best;
    assignments.push_back({suspect.chain, best->worker});
    workers.erase(best);
  }
  return assignments;
}

}  // namespace chainfleet
