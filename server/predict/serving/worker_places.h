// Places of workers for shards, and who has taken them. Not thread-safe.
#pragma once

#include <map>
#include <string>

#include "core/base/limits.h"
#include "core/domain/prediction.h"
#include "server/predict/serving/shard_port.h"

namespace chainfleet {

// A worker has limits::kMaxShardsInFlightPerWorker places. One is not for evaluations, so that a new prediction finds
// it free; one is not for predictions while evaluations wait, so that these never starve. A tenant without a
// prediction at a worker, and the first evaluation there, get a place beyond them, up to kMostShardsPerWorker.
class WorkerPlaces {
 public:
  // `evaluations_wait`: also for another worker.
  bool HasRoom(const ServingWorker& worker, const ShardRequest& request, bool evaluations_wait) const {
    constexpr int kPlaces = limits::kMaxShardsInFlightPerWorker;
    static const Taken kNothing;
    const auto it = taken_.find(worker.id);
    const Taken& taken = it == taken_.end() ? kNothing : it->second;
    if (request.rows) {
      const int places = taken.evaluations == 0 ? kMostShardsPerWorker : kPlaces;
      return taken.evaluations < kPlaces - 1 && worker.shards_in_flight < places;
    }
    const bool kept = evaluations_wait && taken.evaluations == 0;
    const bool new_here = !taken.predictions.contains(request.plan->tenant);
    return worker.shards_in_flight + (kept ? 1 : 0) < (new_here ? kMostShardsPerWorker : kPlaces);
  }
  void Take(const std::string& worker, const ShardRequest& request) {
    Taken& taken = taken_[worker];
    ++(request.rows ? taken.evaluations : taken.predictions[request.plan->tenant]);
  }
  void Leave(const std::string& worker, const ShardRequest& request) {
    const auto it = taken_.find(worker);
    Taken& taken = it->second;
    if (request.rows) {
      --taken.evaluations;
    } else if (--taken.predictions[request.plan->tenant] == 0) {
      taken.predictions.erase(request.plan->tenant);
    }
    if (taken.evaluations == 0 && taken.predictions.empty()) taken_.erase(it);
  }

 private:
  struct Taken {
    int evaluations = 0;
    std::map<std::string, int> predictions = {};  // by tenant
  };
  std::map<std::string, Taken> taken_;  // by worker
};

}  // namespace chainfleet
