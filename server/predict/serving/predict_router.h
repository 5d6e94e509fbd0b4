// Predict: pins draws, sends their shards to serving workers, averages what comes home.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/byte_budget.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "server/predict/serving/draw_catalog.h"
#include "server/predict/serving/predict_observer.h"
#include "server/predict/serving/predict_priority.h"
#include "server/predict/serving/shard_queue.h"

namespace chainfleet {

struct PredictQuery {
  DrawQuery draws;
  std::vector<DrawKind> kinds;         // empty: all the job keeps, as an equal mixture
  int64_t min_draws = 0;               // when time or workers run out, so many suffice; 0: all that are readable
  bool with_errors = true;             // also the Monte Carlo error of each score
  bool anytime = false;                // as many draws as fit into the time, at least min_draws or one
  bool members = false;                // also what each draw says
  std::vector<double> quantiles = {};  // levels, of float32 targets
  std::string trace_id = {};           // goes with the shards, for logs
  PredictPriority priority = PredictPriority::kNormal;  // of its shards among those that wait for workers
  bool rows_are_checked = false;                        // by CheckRows
  // The time within which an answer is hoped for, where that is less than the call's own: a worker that is slow with a
  // shard is passed over in time for it.
  absl::Duration hoped_within = absl::InfiniteDuration();
};

// Thread-safe. What it is given outlives it; a call under way may outlive the router itself.
class PredictRouter {
 public:
  static constexpr int64_t kMaxKeptBytes = 2048 * limits::kMiB;

  // `observer` may be null. `max_kept_bytes`: of all calls together, what single draws say and the sums of anytime
  // calls between their waves.
  PredictRouter(const Clock* clock, Executor* executor, DrawCatalog* catalog, ShardQueue* queue,
                PredictObserver* observer = nullptr, int64_t max_kept_bytes = kMaxKeptBytes);

  // `done` runs once, on the executor, at most `timeout` from now; a call that may end with fewer draws ends
  // EarlyBy(timeout) sooner, so that its answer still arrives. Errors: those of DrawCatalog::Pin and ShardQueue;
  // INVALID_ARGUMENT (inputs, kinds or quantiles do not fit, or single draws say too much); RESOURCE_EXHAUSTED /
  // QUEUE_FULL (others keep too many bytes now); FAILED_PRECONDITION /
  // TOO_FEW_DRAWS (fewer readable draws than min_draws, or none); DEADLINE_EXCEEDED (fewer than min_draws averaged in
  // time); CANCELLED. The returned function cancels the call and its shards; it may be called at any time, by any
  // thread.
  std::function<void()> Predict(PredictQuery query, std::shared_ptr<const InputTensor> inputs, absl::Duration timeout,
                                std::function<void(absl::StatusOr<Prediction>)> done);

  DrawCatalog* catalog() const { return catalog_; }

  // For the way back: a tenth of `timeout`, at most 100 ms.
  static absl::Duration EarlyBy(absl::Duration timeout);

 private:
  PredictObserver* const observer_;
  const Clock* const clock_;
  Executor* const executor_;
  DrawCatalog* const catalog_;
  ShardQueue* const queue_;
  const ByteBudget kept_bytes_;
};

}  // namespace chainfleet
