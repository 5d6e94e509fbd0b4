// Evaluate: a job's averages and single draws, scored against stored data sets.
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
  std::vector<DrawKind> kinds;  // empty: all the job keeps
  std::string dataset;
  std::string ood_dataset = {};          // empty: none
  std::string calibration_dataset = {};  // temperatures are fitted to its labels; empty: none
  int ece_bins = 15;
  std::vector<std::string> corruptions = {};  // of core/domain/corruption.h, or "all"
  bool flatness = false;
  int curve_points = 0;  // 0: none
  int example_rows = 12;
  std::string trace_id = {};  // goes with the shards, for logs
};

// Thread-safe. What it is given outlives it; a call under way may outlive the evaluator itself. Memory per call: a few
// [rows, K] arrays of doubles, bounded over all calls, and the sums of the row blocks in flight, with single draws for
// a curve in blocks of so few rows that all calls together stay below limits::kMaxMemberBytes.
class Evaluator {
 public:
  static constexpr int64_t kMaxRowBytes = 2048 * limits::kMiB;

  // `max_row_bytes`: of the rows of all evaluations under way (EvaluationBytes).
  Evaluator(Executor* executor, DrawCatalog* catalog, BlobStore* blobs, ShardQueue* queue,
            int64_t max_row_bytes = kMaxRowBytes);

  // OK with the version that Evaluate would rest on, if it would begin now; else what it would answer, without reading
  // any row or holding memory for it. Also UNAVAILABLE / NO_SERVING_WORKER. `done` runs once, on the executor.
  void Check(EvaluateQuery query, absl::Duration timeout, std::function<void(absl::StatusOr<int64_t>)> done);

  // `progress` runs after each row block, `done` once, last, at most `timeout` from now; both on the executor, one at a
  // time. Errors: as PredictRouter::Predict with all draws needed; NOT_FOUND and INVALID_ARGUMENT for the data sets,
  // also if their rows take more than max_row_bytes; RESOURCE_EXHAUSTED / QUEUE_FULL while others hold too much of
  // that; DATA_LOSS for stored labels that cannot be read; FAILED_PRECONDITION / NOT_FINITE, at the end of a pass, if
  // draws said NaN or infinity of a row: no score means anything then. The returned function cancels, as there.
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
