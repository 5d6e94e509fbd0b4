// Sends the shards of all calls to workers: predictions before evaluations, with a bound in flight per worker. A lost
// shard goes to another worker, a slow one also to a second worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "server/predict/serving/predict_priority.h"
#include "server/predict/serving/shard_port.h"

namespace chainfleet {

// Returns UNAVAILABLE / NO_SERVING_WORKER.
absl::Status NoServingWorker();

// Thread-safe. Callers cancel shards that they no longer need.
//
// Order of shards that wait for room at a worker: predictions before evaluations (rows of a data set), predictions by
// priority, then by turns of the tenants, then oldest first. WorkerPlaces says who finds room. Waiting predictions are
// bounded by limits::kMaxWaitingShards, evaluations by the number that run.
//
// A worker is slow if it has a shard for longer than a third of the time that was left, within the two bounds, until it
// answers. Time that a shard spends queued behind earlier shards does not count as slowness. Its timer restarts, with a
// third of the time then left, when the worker answers an earlier shard. It also restarts when the worker answers one
// that may overtake it: another tenant's, for twice its length, or any if it is an evaluation. A slow worker gets no
// other shard while there are workers that are not slow, and a second worker that has room after the waiting shards
// gets the shard, too. The first answer counts; either answer is the same up to rounding, and the other attempt is
// cancelled. A worker whose slow attempt was cancelled is used again after ten times its timer, at most kSlowFor.
//
// A worker has lost the shard if CheckShardResult rejects its answer, if it gives none, or if its device or program
// fails. Another worker gets the shard at once. This worker never gets it again, and gets no other shard for
// kSuspendedFor while other workers can take it.
class ShardQueue {
 public:
  static constexpr absl::Duration kSlowShard = absl::Seconds(30);
  static constexpr absl::Duration kLeastSlowShard = absl::Milliseconds(50);
  static constexpr absl::Duration kSlowFor = absl::Minutes(1);
  static constexpr absl::Duration kSuspendedFor = absl::Minutes(1);

  // Runs at most once, on the executor, one at a time over all shards, so it must hand long work over. UNAVAILABLE /
  // NO_SERVING_WORKER, RESOURCE_EXHAUSTED / QUEUE_FULL. After limits::kShardAttempts attempts: UNAVAILABLE or
  // RESOURCE_EXHAUSTED if the last worker was away, full or could not read its draws; INTERNAL / BAD_SHARD_RESULT or
  // WORKER_FAILED, earlier if all workers were at fault. A worker's INVALID_ARGUMENT is final and passed on; its other
  // errors go only to the log.
  using Done = std::function<void(absl::StatusOr<ShardResult>)>;

  // The arguments outlive the queue.
  ShardQueue(const Clock* clock, Executor* executor, ShardPort* port);

  // `preferred` takes the shard if it has room, else the worker with the fewest shards in flight that has not lost it
  // yet. The queue chooses a new request.shard_id for each attempt. `deadline` (monotonic) decides when a worker is
  // slow, and ends nothing. Evaluations ignore `priority`. Returns a ticket for Cancel.
  uint64_t Submit(ShardRequest request, const std::string& preferred, absl::Duration deadline, PredictPriority priority,
                  Done done);

  // `done` does not run any more, unless it already runs. No effect on a finished shard.
  void Cancel(uint64_t ticket);

  // Returns the ids of the workers that serve the tenant, sorted.
  std::vector<std::string> WorkerIds(const std::string& tenant) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace chainfleet
