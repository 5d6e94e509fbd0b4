#include "server/control/scheduling_policy.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

namespace chainfleet {

std::vector<Assignment> AssignByAge(const std::vector<QueuedJob>& queue, const std::vector<FreeSlots>& free,
                                    int32_t limit) {
  std::map<std::string, int32_t> slots;
  for (const FreeSlots& worker : free) {
    if (worker.slots > 0) slots[worker.worker] = worker.slots;
  }
  std::vector<Assignment> assignments;
  for (const QueuedJob& job : queue) {
    std::set<std::tuple<int32_t, int32_t, std::string>> candidates;  // held, -free, worker
    for (const auto& [worker, count] : slots) {
      const auto held = job.held.find(worker);
      candidates.emplace(held == job.held.end() ? 0 : held->second, -count, worker);
    }
    for (const PendingChain& chain : job.chains) {
      if (candidates.empty() || static_cast<int32_t>(assignments.size()) >= limit) break;
      auto best = candidates.begin();
      if (std::get<2>(*best) == chain.shunned_worker && candidates.size() > 1) ++best;
      auto [held, negative_free, worker] = *best;
      candidates.erase(best);
      assignments.push_back({{job.job, chain.index}, worker});
      if (--slots[worker] > 0) {
        candidates.emplace(held + 1, negative_free + 1, worker);
      } else {
        slots.erase(worker);
      }
    }
    if (slots.empty() || static_cast<int32_t>(assignments.size()) >= limit) break;
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
