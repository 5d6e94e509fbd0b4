// Lets requests for the same draws share passes: while one batch is at the workers, further requests gather for the
// next.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/per_tenant.h"
#include "core/base/status.h"
#include "server/predict/serving/inference_statistics.h"
#include "server/predict/serving/predict_priority.h"
#include "server/predict/serving/predict_router.h"
#include "server/predict/serving/row_rates.h"
#include "server/predict/serving/tenant_places.h"

namespace chainfleet {

struct BatchLimits {
  int64_t max_rows = 512;    // in a batch; a larger request is its own batch
  absl::Duration max_delay;  // time that a request waits for others while the workers are free
  // Waiting requests. Beyond it, a tenant's requests are rejected that has as many as its equal share, or more.
  int64_t max_waiting = 1024;
  PerTenant<int64_t> tenant_rows_per_second = RowRates::kNone;
  int64_t max_bytes = limits::kMaxPredictBytes;  // bytes of all inputs, waiting or in flight; further ones are rejected
};

// Placed before a PredictRouter. Thread-safe. The constructor's arguments outlive the batcher; a call may outlive the
// batcher itself.
//
// A version number is looked up when the request arrives, so a version that is deleted while the request waits is still
// served.
//
// Requests share a batch if they use the same draws of the same job, with rows of one shape and type. A batch with
// max_rows rows starts when fewer than kFullBatchesInFlight of its kind are in flight: waiting would not make it
// larger, and workers that have the next batch do not idle. A smaller batch starts when fewer than kBatchesInFlight are
// in flight and its oldest request has waited for max_delay. Batches that are less urgent than the most urgent waiting
// request do not count as in flight, so it does not wait for them. Nor does a request wait here for requests of more
// than max_rows, which may take minutes: kFullBatchesInFlight of them run besides the others. Requests whose own
// deadline decides their result (min_draws, anytime), or that want more than averages, run alone and never wait here.
//
// A batch is as urgent at the workers as its most urgent request.
class Batcher {
 public:
  static constexpr int kBatchesInFlight = 2, kFullBatchesInFlight = 4;
  // Shortest delay of a RESOURCE_EXHAUSTED, unless the request's own deadline is near.
  static constexpr absl::Duration kRefusalDelay = RefusalTimes::kDelay;

  // `statistics` counts batches and successful requests. `observer` may be null.
  Batcher(const Clock* clock, Executor* executor, PredictRouter* router, InferenceStatistics* statistics,
          BatchLimits limits, PredictObserver* observer = nullptr);

  const BatchLimits& limits() const;

  // Errors are those of PredictRouter::Predict, and RESOURCE_EXHAUSTED / QUEUE_FULL or TENANT_LIMIT. A request that
  // times out or is cancelled while it waits never reaches a worker. A request that is rejected for its contents does
  // not affect the others of its batch. The shards of a batch carry the first request's trace_id and "+N" for N others.
  std::function<void()> Predict(PredictQuery query, std::shared_ptr<const InputTensor> inputs, absl::Duration timeout,
                                PredictPriority priority, std::function<void(absl::StatusOr<Prediction>)> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace chainfleet
