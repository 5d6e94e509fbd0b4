// Sends shards to workers with an open ServeShards stream: gRPC in production, in-process in tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/limits.h"
#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

// Shards in flight to a worker, with the places that tenants get beyond limits::kMaxShardsInFlightPerWorker.
inline constexpr int kMostShardsPerWorker = 2 * limits::kMaxShardsInFlightPerWorker;
static_assert(kMostShardsPerWorker <= limits::kMaxQueuedShards, "a worker takes them all");

struct ServingWorker {
  std::string id;
  int32_t shards_in_flight = 0;  // from Send until just before its `done` runs
  Admission admission = {};      // says whose shards it takes
};

// Thread-safe.
class ShardPort {
 public:
  virtual ~ShardPort() = default;

  // Sorted by id.
  virtual std::vector<ServingWorker> Workers() = 0;

  // Sends one shard. `done` runs exactly once: the result, the worker's error, or UNAVAILABLE if its stream ends first.
  // The caller chooses request.shard_id, unique in the process.
  virtual void Send(const std::string& worker, const ShardRequest& request,
                    std::function<void(absl::StatusOr<ShardResult>)> done) = 0;

  // Tells the worker to drop the shard; `done` still runs, with CANCELLED, unless it has run already.
  virtual void Cancel(const std::string& worker, uint64_t shard_id) = 0;
};

}  // namespace chainfleet
