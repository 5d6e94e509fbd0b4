// Predictions that use what an evaluation found: weights of chains, and thresholds of conformal sets and intervals.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chainfleet/v1/predict.pb.h"
#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "server/predict/evaluation/evaluation_operations.h"
#include "server/predict/serving/predict_router.h"

namespace chainfleet {

// Returns the id of the evaluation that `request` names; empty: none. INVALID_ARGUMENT: options that need one, are out
// of range, or exclude each other.
absl::StatusOr<std::string> EvaluationNamed(const v1::PredictRequest& request);

// Conformal sets or intervals to add to a prediction.
struct Conformal {
  std::vector<double> thresholds;  // as Evaluation::conformal_thresholds; empty: none asked
  double level = 0;
  // Counts of the evaluation. Both are compared: max_draws takes more draws of other chains where one has failed.
  int64_t draws_used = 0, draws_in_version = 0;

  // FAILED_PRECONDITION / TOO_FEW_DRAWS unless the prediction averages the draws of the evaluation: a chain may have
  // failed since, and draws may have been deleted.
  absl::Status AddTo(Prediction* prediction) const;
};

// Changes `query` of `request` to use `evaluation`, which is of the caller's tenant. INVALID_ARGUMENT: it is of another
// job, has not succeeded, found no such thing, or is of another version.
absl::StatusOr<Conformal> UseEvaluation(const v1::EvaluationOperation& evaluation, const v1::PredictRequest& request,
                                        PredictQuery* query);

struct PreparedQuery {
  PredictQuery query;
  Conformal conformal;
};

// Makes `query` of `request` use the evaluation `id` of its tenant, and calls `done` with it, perhaps in another
// thread; at once if `id` is empty. Copies `request`, which is gone once its client has cancelled. Errors of
// UseEvaluation. NOT_FOUND: there is none.
void PrepareQuery(EvaluationOperations* evaluations, const std::string& id, const v1::PredictRequest& request,
                  PredictQuery query, std::function<void(absl::StatusOr<PreparedQuery>)> done);

}  // namespace chainfleet
