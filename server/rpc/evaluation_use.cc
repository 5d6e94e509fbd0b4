#include "server/rpc/evaluation_use.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/scores/conformal.h"
#include "server/rpc/selection_query.h"

namespace chainfleet {
namespace {

constexpr double kDefaultLevel = 0.9, kLeastLevel = 0.001, kMostLevel = 0.999;

absl::Status TakesDrawsOf(const v1::PredictRequest& request) {
  v1::DrawSelection selection = request.selection();
  selection.clear_version();
  if (selection.ByteSizeLong() == 0 && !request.anytime() && request.min_draws() == 0) return absl::OkStatus();
  return InvalidFields({{"conformal",
                         "averages exactly the draws of its evaluation: leave out selection, anytime and "
                         "min_draws, and select draws for the evaluation instead"}});
}

// Gives the chains their weights, and leaves chains without weight out.
absl::Status TakeWeights(const v1::EvaluationOperation& evaluation, const v1::DrawSelection& selection,
                         DrawQuery* draws) {
  const v1::Evaluation& found = evaluation.evaluation();
  if (!draws->point.empty()) {
    return InvalidFields({{"selection.point", "is that of the evaluation of selection.weights: leave it out"}});
  }
  draws->version = found.version();
  draws->point = found.point();
  draws->include_failed |= evaluation.request().selection().include_failed();
  std::vector<int32_t> chains;
  for (const v1::ChainWeight& chain : found.weights()) {
    const double weight = selection.pseudo_bma() ? chain.pseudo_bma() : chain.stacking();
    const int32_t index = chain.chain().index();
    if (!(weight > 0) || (!draws->chains.empty() && std::ranges::count(draws->chains, index) == 0)) continue;
    draws->shares[index] = weight;
    chains.push_back(index);
  }
  if (found.weights().empty()) {
    return InvalidFields({{"selection.weights", absl::StrCat("evaluation ", evaluation.id(),
                                                             " has no weights: it had no stacking_dataset")}});
  }
  if (chains.empty()) {
    return InvalidFields({{"selection.chains",
                           absl::StrCat("none of these chains has a weight above 0 in evaluation ", evaluation.id())}});
  }
  draws->chains = std::move(chains);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> EvaluationNamed(const v1::PredictRequest& request) {
  std::vector<FieldViolation> violations;
  const double level = request.conformal_level();
  if (level != 0 && !(level >= kLeastLevel && level <= kMostLevel)) {
    violations.push_back({"conformal_level", absl::StrCat("is ", level, ": must be 0.001 to 0.999")});
  }
  if (level != 0 && request.conformal().empty()) {
    violations.push_back({"conformal_level", "needs conformal: the id of an evaluation with a calibration_dataset"});
  }
  if (request.selection().pseudo_bma() && request.selection().weights().empty()) {
    violations.push_back({"selection.pseudo_bma", "needs selection.weights: the id of an evaluation"});
  }
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(violations));
  if (request.conformal().empty()) return request.selection().weights();
  CHAINFLEET_RETURN_IF_ERROR(TakesDrawsOf(request));
  return request.conformal();
}

absl::Status Conformal::AddTo(Prediction* prediction) const {
  if (thresholds.empty()) return absl::OkStatus();
  if (prediction->draws_used != draws_used || prediction->draws_in_version != draws_in_version) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "conformal: this averages ", prediction->draws_used, " of ", prediction->draws_in_version,
                          " draws, and the evaluation averaged ", draws_used, " of ", draws_in_version,
                          ", because a chain failed since, or draws were deleted: evaluate again")),
                      "TOO_FEW_DRAWS");
  }
  const double threshold = ConformalThreshold(thresholds, level);
  if (const auto* classes = std::get_if<ClassScores>(&prediction->scores.of)) {
    for (const double probability : classes->mean_probability) {
      prediction->prediction_set.push_back(ConformalScoreOf(probability) <= threshold ? 1 : 0);
    }
    return absl::OkStatus();
  }
  const NumberScores& numbers = prediction->scores.numbers();
  for (size_t row = 0; row < numbers.mean.size(); ++row) {
    const double half =
        ConformalHalfWidth(threshold, numbers.variance_aleatoric[row] + numbers.variance_epistemic[row]);
    prediction->interval.push_back(numbers.mean[row] - half);
    prediction->interval.push_back(numbers.mean[row] + half);
  }
  return absl::OkStatus();
}

absl::StatusOr<Conformal> UseEvaluation(const v1::EvaluationOperation& evaluation, const v1::PredictRequest& request,
                                        PredictQuery* query) {
  const bool conformal = !request.conformal().empty();
  const auto refuse = [&](const auto&... why) {
    return InvalidFields(
        {{conformal ? "conformal" : "selection.weights", absl::StrCat("evaluation ", evaluation.id(), why...)}});
  };
  if (evaluation.job_id() != query->draws.job) return refuse(" is of job ", evaluation.job_id());
  if (evaluation.state() != v1::EvaluationOperation::SUCCEEDED) {
    return refuse(" is ", v1::EvaluationOperation::State_Name(evaluation.state()), ": it must have SUCCEEDED");
  }
  const v1::Evaluation& found = evaluation.evaluation();
  if (query->draws.version != 0 && query->draws.version != found.version()) {
    return refuse(" is of version ", found.version(), ", and version ", query->draws.version, " is asked for");
  }
  if (!conformal) {
    query->with_errors = false;  // the weights were fitted, too, which the errors would not count
    CHAINFLEET_RETURN_IF_ERROR(TakeWeights(evaluation, request.selection(), &query->draws));
    if (query->kinds.empty()) {
      CHAINFLEET_ASSIGN_OR_RETURN(query->kinds, KindsOf(evaluation.request().selection()));
    }
    return Conformal();
  }
  if (found.conformal_thresholds_size() != kConformalLevels) return refuse(" had no calibration_dataset");
  DrawQuery draws = QueryOf(query->draws.job, evaluation.request().selection());
  draws.version = found.version();
  draws.pinned = std::move(query->draws.pinned);
  query->draws = std::move(draws);
  CHAINFLEET_ASSIGN_OR_RETURN(query->kinds, KindsOf(evaluation.request().selection()));
  return Conformal{{found.conformal_thresholds().begin(), found.conformal_thresholds().end()},
                   request.conformal_level() == 0 ? kDefaultLevel : request.conformal_level(),
                   found.draws_used(),
                   found.draws_in_version()};
}

void PrepareQuery(EvaluationOperations* evaluations, const std::string& id, const v1::PredictRequest& request,
                  PredictQuery query, std::function<void(absl::StatusOr<PreparedQuery>)> done) {
  if (id.empty()) return done(PreparedQuery{std::move(query), {}});
  const std::string tenant = query.tenant;  // a copy, because the callback takes the query
  evaluations->Get(id, tenant,
                   [request, query = std::move(query),
                    done = std::move(done)](const absl::StatusOr<EvaluationOperations::View>& view) mutable {
                     if (!view.ok()) return done(view.status());
                     const absl::StatusOr<v1::EvaluationOperation> operation = RenderOperation(*view);
                     if (!operation.ok()) return done(operation.status());
                     absl::StatusOr<Conformal> conformal = UseEvaluation(*operation, request, &query);
                     if (!conformal.ok()) return done(conformal.status());
                     done(PreparedQuery{std::move(query), *std::move(conformal)});
                   });
}

}  // namespace chainfleet
