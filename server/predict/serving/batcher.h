// Requests for the same draws share their passes: while a batch of them is at the workers, the others gather for the
// next.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/status.h"
#include "server/predict/serving/inference_statistics.h"
#include "server/predict/serving/predict_priority.h"
#include "server/predict/serving/predict_router.h"

namespace chainfleet {

struct BatchLimits {
  int64_t max_rows = 512;                        // of a batch; a request with more is one of its own
  absl::Duration max_delay;                      // how long a request waits for company while the workers are free
  int64_t max_waiting = 1024;                    // requests; more are refused
  int64_t max_bytes = limits::kMaxPredictBytes;  // of all inputs, also of what is under way; more are refused
};

// In front of a PredictRouter. Thread-safe; what it is given outlives it, a call under way may outlive the batcher
// itself.
//
// A number of a version is looked up when the request arrives, so that a version that is deleted while the request
// waits is served yet.
//
// Requests share a batch if they ask for the same draws of the same job in rows of one shape and type. A batch whose
// rows are max_rows starts when fewer than kFullBatchesInFlight of its kind are under way: waiting would not make it
// larger, and workers that have the next at hand do not idle. Another one starts when fewer than kBatchesInFlight are
// and its oldest request has waited for max_delay. Batches that are less urgent than the most urgent request that waits
// do not count as under way: it does not wait for them. Nor does a request wait here for those of more than max_rows,
// which may take minutes: kFullBatchesInFlight of them are under way beside the others. Requests whose own deadline
// decides what they get (min_draws, anytime), or that want more than averages, go alone: they wait for nobody here.
//
// A batch is as urgent at the workers as its most urgent request.
class Batcher {
 public:
  static constexpr int kBatchesInFlight = 2, kFullBatchesInFlight = 4;

  // `statistics` is told of batches and of the requests that succeed. `observer` may be null.
  Batcher(const Clock* clock, Executor* executor, PredictRouter* router, InferenceStatistics* statistics,
          BatchLimits limits, PredictObserver* observer = nullptr);

  const BatchLimits& limits() const;

  // As PredictRouter::Predict, and RESOURCE_EXHAUSTED / QUEUE_FULL. A request whose deadline passes or that is
  // cancelled while it waits never reaches a worker; one that is refused for what it holds does not hurt the others of
  // its batch. The shards of a batch carry the first request's trace_id and "+N" for N others.
  std::function<void()> Predict(PredictQuery query, std::shared_ptr<const InputTensor> inputs, absl::Duration timeout,
                                PredictPriority priority, std::function<void(absl::StatusOr<Prediction>)> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace chainfleet
