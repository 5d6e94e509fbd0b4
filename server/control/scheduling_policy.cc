#include "server/control/scheduling_policy.h"

#include <algorithm>
#include <utility>

namespace chainfleet {

Placement::Placement(std::vector<FreeSlots> fleet) {
  std::ranges::sort(fleet, {}, &FreeSlots::worker);
  std::map<std::string, size_t> host_numbers;
  for (FreeSlots& free : fleet) {
    const size_t host = host_numbers.emplace(free.host, host_numbers.size()).first->second;
    slots_ += free.slots;
    workers_.push_back({std::move(free), host, 0});
  }
  hosts_.resize(host_numbers.size());
  for (size_t worker = 0; worker < workers_.size(); ++worker) {
    if (workers_[worker].free.slots > 0) hosts_[workers_[worker].host].free.insert(RankOf(worker));
  }
  for (const Host& host : hosts_) {
    if (!host.free.empty()) order_.insert(RankOf(host));
  }
}

Placement::WorkerRank Placement::RankOf(size_t worker) const {
  return {workers_[worker].held, -workers_[worker].free.slots, worker};
}

std::optional<size_t> Placement::Find(const std::string& worker) const {
  const auto found = std::ranges::lower_bound(workers_, worker, {},
                                              [](const Worker& w) -> const std::string& { return w.free.worker; });
  if (found == workers_.end() || found->free.worker != worker) return std::nullopt;
  return static_cast<size_t>(found - workers_.begin());
}

std::optional<size_t> Placement::Choose(const QueuedJob& job, const std::string& avoided_worker) const {
  std::optional<size_t> avoided;
  for (const auto& [held, best] : order_) {
    for (const auto& [in_worker, taken, worker] : hosts_[workers_[std::get<2>(best)].host].free) {
      const FreeSlots& free = workers_[worker].free;
      if (!free.Fits(job.chain_bytes) || !free.admission.Admits(job.tenant)) continue;
      if (free.worker != avoided_worker) return worker;
      avoided = worker;
    }
  }
  return avoided;
}

void Placement::Hold(size_t worker, int32_t chains, int32_t taken, int64_t bytes) {
  Worker& entry = workers_[worker];
  Host& host = hosts_[entry.host];
  if (!host.free.empty()) order_.erase(RankOf(host));
  host.free.erase(RankOf(worker));
  host.held += chains;
  entry.held += chains;
  entry.free.Take(taken, bytes);
  slots_ -= taken;
  if (entry.free.slots > 0) host.free.insert(RankOf(worker));
  if (!host.free.empty()) order_.insert(RankOf(host));
}

void Placement::Close(const std::string& worker) {
  if (const std::optional<size_t> known = Find(worker)) Hold(*known, 0, workers_[*known].free.slots, 0);
}

std::vector<Assignment> Placement::Place(const QueuedJob& job, size_t limit) {
  std::map<size_t, int32_t> held;
  for (const auto& [worker, chains] : job.held) {
    const std::optional<size_t> known = Find(worker);
    if (known) Hold(*known, held[*known] = chains, 0, 0);
  }
  std::vector<Assignment> assignments;
  for (const PendingChain& chain : job.chains) {
    if (assignments.size() >= limit || slots_ == 0) break;
    const std::optional<size_t> worker = Choose(job, chain.avoided_worker);
    if (!worker) {
      const auto known = too_big_.emplace(job.tenant, job.chain_bytes).first;
      known->second = std::min(known->second, job.chain_bytes);
      break;
    }
    Hold(*worker, 1, 1, job.chain_bytes);
    ++held[*worker];
    assignments.push_back({{job.job, chain.index}, workers_[*worker].free.worker});
  }
  for (const auto& [worker, chains] : held) Hold(worker, -chains, 0, 0);
  return assignments;
}

std::vector<Assignment> AssignAlone(const std::vector<SuspectChain>& suspects, std::vector<SoloWorker> workers) {
  std::ranges::sort(workers, {}, [](const SoloWorker& w) { return std::tie(w.chains, w.worker); });
  std::vector<Assignment> assignments;
  for (const SuspectChain& suspect : suspects) {
    const auto takes = [&](const SoloWorker& worker) { return worker.admission.Admits(suspect.tenant); };
    auto best = std::ranges::find_if(workers, takes);
    if (best == workers.end()) continue;
    if (best->worker == suspect.avoided_worker) {
      const auto other = std::find_if(best + 1, workers.end(), takes);
      if (other != workers.end()) best = other;
    }
    assignments.push_back({suspect.chain, best->worker});
    workers.erase(best);
  }
  return assignments;
}

}  // namespace chainfleet
