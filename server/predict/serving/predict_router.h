// Predict: pins draws, sends their shards to serving workers, and averages the results.
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
  std::vector<DrawKind> kinds;         // empty: all kinds that the job keeps, as an equal mixture
  int64_t min_draws = 0;               // draws that suffice if time or workers run out; 0: all readable draws
  bool with_errors = true;             // also the Monte Carlo error of each score
  bool anytime = false;                // average as many draws as fit into the time, at least min_draws or one
  bool members = false;                // also return the outputs of each draw
  bool gradients = false;              // also return the gradients by the inputs, of the mean and of each draw
  std::vector<double> quantiles = {};  // levels, for float32 targets
  std::string tenant = {};             // the caller's
  std::string trace_id = {};           // sent with the shards, for logs
  PredictPriority priority = PredictPriority::kNormal;  // for its shards that wait for workers
  bool rows_are_checked = false;                        // by CheckRows
  // The hoped-for time until an answer, if it is shorter than the call's own. A worker that is slow with a shard is
  // bypassed early enough to meet it.
  absl::Duration hoped_within = absl::InfiniteDuration();
};

// Thread-safe. The constructor's arguments outlive the router; a call may outlive the router itself.
class PredictRouter {
 public:
  static constexpr int64_t kMaxKeptBytes = 2048 * limits::kMiB;

  // `observer` may be null. `max_kept_bytes` bounds, over all calls, the outputs of single draws and the sums that
  // anytime calls keep between waves.
  PredictRouter(const Clock* clock, Executor* executor, DrawCatalog* catalog, ShardQueue* queue,
                PredictObserver* observer = nullptr, int64_t max_kept_bytes = kMaxKeptBytes);

  // `done` runs once, on the executor, at most `timeout` from now. A call that may end with fewer draws ends
  // EarlyBy(timeout) sooner, so that its answer still arrives. Errors: those of DrawCatalog::Pin and ShardQueue;
  // INVALID_ARGUMENT (inputs, kinds or quantiles do not fit, or the outputs of single draws are too large);
  // RESOURCE_EXHAUSTED / QUEUE_FULL (other calls keep too many bytes now); FAILED_PRECONDITION / TOO_FEW_DRAWS (fewer
  // readable draws than min_draws, or none); DEADLINE_EXCEEDED (fewer than min_draws averaged in time); CANCELLED. The
  // returned function cancels the call and its shards; any thread may call it at any time.
  std::function<void()> Predict(PredictQuery query, std::shared_ptr<const InputTensor> inputs, absl::Duration timeout,
                                std::function<void(absl::StatusOr<Prediction>)> done);

  DrawCatalog* catalog() const { return catalog_; }

  // Time reserved for the reply: a tenth of `timeout`, at most 100 ms.
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
