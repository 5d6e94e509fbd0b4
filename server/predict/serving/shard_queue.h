// The shards of all calls on their way to workers: predictions before evaluations, bounded in flight per worker, a lost
// one sent elsewhere, a slow one a second time.
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

// UNAVAILABLE / NO_SERVING_WORKER.
absl::Status NoServingWorker();

// Thread-safe. The caller cancels what it no longer waits for.
//
// Shards that wait for room at a worker: those of predictions go before those of evaluations (of rows of a data set),
// predictions by their priority, then the oldest first. A worker has limits::kMaxShardsInFlightPerWorker places. One is
// not for evaluations: a prediction that comes finds it free. One is not for predictions while evaluations wait: these
// never starve. Bounded are the predictions that wait, by limits::kMaxWaitingShards; evaluations are by how many of
// them run.
//
// A worker that has a shard for longer than a third of the time that was left, within the two bounds, is slow until
// it answers. What stands before a shard at a worker is not the worker's slowness: the shard's time begins anew, with a
// third of what is left then, when the worker answers one that it got earlier, and an evaluation's, which lets
// predictions go first, when it answers any. A slow worker gets no other one while there are workers that are not, and
// the shard goes to a second worker that has room for it after those that wait. The first answer counts, which of the
// two it is changes nothing but rounding; the other attempt is cancelled. A worker that was slow with an attempt that
// was cancelled is tried again after ten times as long as it was waited for, at most kSlowFor.
//
// A worker whose answer CheckShardResult refuses, or is none, or whose device or program fails, has lost the shard:
// another one gets it at once, this one never again, and no other shard for kDoubtedFor while there are workers that
// can take it.
class ShardQueue {
 public:
  static constexpr absl::Duration kSlowShard = absl::Seconds(30);
  static constexpr absl::Duration kLeastSlowShard = absl::Milliseconds(50);
  static constexpr absl::Duration kSlowFor = absl::Minutes(1);
  static constexpr absl::Duration kDoubtedFor = absl::Minutes(1);

  // Runs at most once, on the executor, one at a time over all shards: hand real work over. UNAVAILABLE /
  // NO_SERVING_WORKER, RESOURCE_EXHAUSTED / QUEUE_FULL; after limits::kShardAttempts tries UNAVAILABLE or
  // RESOURCE_EXHAUSTED if the last worker was away, full or could not read its draws; INTERNAL / BAD_SHARD_RESULT or
  // WORKER_FAILED, which comes before if all workers there are were at fault. What a worker says of the request
  // (INVALID_ARGUMENT) is final and passed on; all else that workers say goes to the log alone.
  using Done = std::function<void(absl::StatusOr<ShardResult>)>;

  // What it is given outlives the queue.
  ShardQueue(const Clock* clock, Executor* executor, ShardPort* port);

  // `preferred` takes the shard if it has room, else the worker with the fewest in flight among those that have not
  // lost it yet. request.shard_id is chosen here, anew for each attempt. `deadline`: on the monotonic clock; says when
  // a worker is slow with it, and ends nothing. `priority` is nothing to an evaluation. Returns a ticket for Cancel.
  uint64_t Submit(ShardRequest request, const std::string& preferred, absl::Duration deadline, PredictPriority priority,
                  Done done);

  // `done` runs no more, unless it is running now. No effect on a shard that is done.
  void Cancel(uint64_t ticket);

  // Of the serving workers, by id.
  std::vector<std::string> WorkerIds() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace chainfleet
