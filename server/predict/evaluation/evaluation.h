// Evaluate: scores a job's averages and single draws on stored data sets.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/byte_budget.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/status.h"
#include "core/domain/evaluation.h"
#include "server/predict/serving/draw_catalog.h"
#include "server/predict/serving/shard_queue.h"

namespace chainfleet {

class BlobStore;

struct EvaluateQuery {
  DrawQuery draws;
  std::vector<DrawKind> kinds;  // empty: all kinds that the job keeps
  std::string dataset;
  std::string ood_dataset = {};          // empty: none
  std::string calibration_dataset = {};  // calibrates temperatures, conformal sets and intervals; empty: none
  std::string stacking_dataset = {};     // weights of the chains are fitted to it; empty: none
  int32_t ece_bins = 15;
  std::vector<std::string> corruptions = {};  // names from core/domain/corruption.h, or "all"
  bool flatness = false;
  int32_t curve_points = 0;  // 0: none
  int32_t example_rows = 12;
  std::string trace_id = {};  // sent with the shards, for logs

  // The fields of v1.EvaluateRequest but job, selection and request_id.
  static void Fields(auto& self, auto&& visit) {
    visit("dataset", self.dataset);
    visit("ood_dataset", self.ood_dataset);
    visit("calibration_dataset", self.calibration_dataset);
    visit("stacking_dataset", self.stacking_dataset);
    visit("ece_bins", self.ece_bins, OrDefault());
    visit("corruptions", self.corruptions);
    visit("flatness", self.flatness);
    visit("curve_points", self.curve_points);
    visit("example_rows", self.example_rows, OrDefault());
  }
};

// Thread-safe. The constructor's arguments outlive the Evaluator, but a call may outlive it. Memory per call: a few
// [rows, K] arrays of doubles, bounded over all calls, and the sums of the row blocks in flight. For a curve the blocks
// also hold single draws; they are then cut so small that all calls together stay below limits::kMaxMemberBytes.
class Evaluator {
 public:
  static constexpr int64_t kMaxRowBytes = 2048 * limits::kMiB;

  // `max_row_bytes`: bound on the bytes for the rows of all running evaluations (EvaluationBytes).
  Evaluator(Executor* executor, DrawCatalog* catalog, BlobStore* blobs, ShardQueue* queue,
            int64_t max_row_bytes = kMaxRowBytes);

  // Returns the version that Evaluate would read if it started now, or the error that it would return, without reading
  // or reserving memory for rows. Also UNAVAILABLE / NO_SERVING_WORKER. `done` runs once, on the executor.
  void Check(EvaluateQuery query, absl::Duration timeout, std::function<void(absl::StatusOr<int64_t>)> done);

  // `progress` runs after each row block. `done` runs once, last, at most `timeout` from now. Both run on the executor,
  // one at a time. Errors: as PredictRouter::Predict with all draws needed; NOT_FOUND and INVALID_ARGUMENT for the data
  // sets, also if their rows need more than max_row_bytes; RESOURCE_EXHAUSTED / QUEUE_FULL while other evaluations hold
  // too much of max_row_bytes; DATA_LOSS for stored labels that cannot be read; FAILED_PRECONDITION / NOT_FINITE, at
  // the end of a pass, if draws returned NaN or infinity for a row, which makes every score meaningless. The returned
  // function cancels the call, as for PredictRouter::Predict.
  std::function<void()> Evaluate(EvaluateQuery query, absl::Duration timeout,
                                 std::function<void(const EvaluationProgress&)> progress,
                                 std::function<void(absl::StatusOr<Evaluation>)> done);

 private:
  Executor* const executor_;
  DrawCatalog* const catalog_;
  BlobStore* const blobs_;
  ShardQueue* const queue_;
  const ByteBudget row_bytes_;
};

}  // namespace chainfleet
