#include "server/control/preemption.h"

#include <map>
#include <set>
#include <utility>

namespace chainfleet {
namespace {

struct Place {
  FreeSlots free;
  std::vector<size_t> running;  // indices of chains that have not yielded; the next to yield is last
};

class Yielding {
 public:
  Yielding(const std::vector<RunningChain>& running, const std::vector<FreeSlots>& fleet) : running_(running) {
    for (const FreeSlots& worker : fleet) places_[worker.worker].free = worker;
    for (size_t i = running.size(); i-- > 0;) places_.at(running[i].worker).running.push_back(i);
  }

  void MakeRoomFor(const WaitingChains& job) {
    const auto known = too_big_.find(job.tenant);
    if (known != too_big_.end() && job.chain_bytes >= known->second) return;
    int32_t left = job.count;
    for (auto& [id, place] : places_) {
      if (!place.free.admission.Admits(job.tenant)) continue;
      for (; left > 0 && place.free.Fits(job.chain_bytes); --left) place.free.Take(1, job.chain_bytes);
    }
    std::set<const Place*> in_vain;
    for (size_t i = 0; left > 0 && i < running_.size() && running_[i].tier < job.tier; ++i) {
      Place& place = places_.at(running_[i].worker);
      // Skip a chain that has yielded already, and a worker that cannot make room.
      if (place.running.empty() || place.running.back() != i || in_vain.contains(&place)) continue;
      if (!place.free.admission.Admits(job.tenant)) continue;
      if (Clear(job, &place)) {
        place.free.Take(1, job.chain_bytes);
        --left;
      } else {
        in_vain.insert(&place);
      }
    }
    if (left > 0) too_big_[job.tenant] = job.chain_bytes;
  }

  std::vector<ChainId> Chosen() { return std::move(yielding_); }

 private:
  // No chain yields unless the chains that may yield make room for a waiting one.
  bool Clear(const WaitingChains& job, Place* place) {
    FreeSlots cleared = place->free;
    size_t kept = place->running.size();
    while (!cleared.Fits(job.chain_bytes)) {
      if (kept == 0 || running_[place->running[kept - 1]].tier >= job.tier) return false;
      cleared.Take(-1, -running_[place->running[--kept]].bytes);
    }
    place->free = cleared;
    for (; place->running.size() > kept; place->running.pop_back()) {
      yielding_.push_back(running_[place->running.back()].chain);
    }
    return true;
  }

  const std::vector<RunningChain>& running_;
  std::map<std::string, Place> places_;  // by worker
  std::vector<ChainId> yielding_;
  // By tenant: chains this large found no room, and later jobs may displace no more.
  std::map<std::string, int64_t> too_big_;
};

}  // namespace

std::vector<ChainId> ChooseYielding(const std::vector<WaitingChains>& waiting, const std::vector<RunningChain>& running,
                                    const std::vector<FreeSlots>& fleet) {
  Yielding yielding(running, fleet);
  for (const WaitingChains& job : waiting) yielding.MakeRoomFor(job);
  return yielding.Chosen();
}

}  // namespace chainfleet
