// Predict: pins draws, sends their shards to serving workers, averages what comes home.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "server/predict/draw_catalog.h"
#include "server/predict/shard_queue.h"

namespace chainfleet {

struct PredictQuery {
  DrawQuery draws;
  std::vector<DrawKind> kinds;  // empty: all the job keeps, as an equal mixture
  int64_t min_draws = 0;        // when time or workers run out, so many suffice; 0: all that are readable
  bool with_errors = true;      // also the Monte Carlo error of each score
};

// Thread-safe. What it is given outlives it; a call under way may outlive the router itself.
class PredictRouter {
 public:
  PredictRouter(Executor* executor, DrawCatalog* catalog, ShardQueue* queue);

  // `done` runs once, on the executor, at most `timeout` from now. Errors: those of DrawCatalog::Pin and ShardQueue;
  // INVALID_ARGUMENT (inputs or kinds do not fit); FAILED_PRECONDITION / TOO_FEW_DRAWS (fewer readable draws than
  // min_draws, or none); DEADLINE_EXCEEDED (fewer than min_draws averaged in time); CANCELLED.
  // The returned function cancels the call and its shards; it may be called at any time, by any thread.
  std::function<void()> Predict(PredictQuery query, std::shared_ptr<const InputTensor> inputs, absl::Duration timeout,
                                std::function<void(absl::StatusOr<Prediction>)> done);

 private:
  Executor* const executor_;
  DrawCatalog* const catalog_;
  ShardQueue* const queue_;
};

}  // namespace chainfleet
