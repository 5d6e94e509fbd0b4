// The way from the router to the workers that have an open ServeShards stream. gRPC in production, in-process in tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/prediction.h"

namespace chainfleet {

struct ServingWorker {
  std::string id;
  int32_t shards_in_flight = 0;  // from Send until just before its `done` runs
};

// Thread-safe.
class ShardPort {
 public:
  virtual ~ShardPort() = default;

  // By id.
  virtual std::vector<ServingWorker> Workers() = 0;

  // Sends one shard. `done` runs exactly once: the result, the worker's error, or UNAVAILABLE when its stream ends
  // first. request.shard_id is chosen by the caller, unique per process.
  virtual void Send(const std::string& worker, const ShardRequest& request,
                    std::function<void(absl::StatusOr<ShardResult>)> done) = 0;

  // Tells the worker to drop the shard; `done` still runs, with CANCELLED, unless it ran already.
  virtual void Cancel(const std::string& worker, uint64_t shard_id) = 0;
};

}  // namespace chainfleet
