#include "server/rpc/selection_query.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/wire/predict_wire.h"
#include "core/wire/stored_message.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

constexpr int kDefaultEceBins = 15, kMaxEceBins = 1000, kDefaultExampleRows = 12;

absl::Status Unreadable(const std::string& id) {
  return absl::InternalError(absl::StrCat("evaluation ", id, " cannot be read from the store: start it again"));
}

v1::EvaluationOperation::State StateOf(EvaluationState state) {
  switch (state) {
    case EvaluationState::kRunning:
      return v1::EvaluationOperation::RUNNING;
    case EvaluationState::kSucceeded:
      return v1::EvaluationOperation::SUCCEEDED;
    case EvaluationState::kFailed:
      return v1::EvaluationOperation::FAILED;
    case EvaluationState::kCancelled:
      return v1::EvaluationOperation::CANCELLED;
  }
  return v1::EvaluationOperation::STATE_UNSPECIFIED;
}

}  // namespace

absl::Status CheckSelection(const v1::DrawSelection& selection) {
  std::vector<FieldViolation> violations;
  if (selection.version() < 0) violations.push_back({"selection.version", "must be 0 (newest) or a version number"});
  if (selection.members() < 0) violations.push_back({"selection.members", "must be 0 (all) or a number of draws"});
  if (selection.every() < 0) violations.push_back({"selection.every", "must be 0 or 1 (each), or every so many-th"});
  if (selection.max_draws() < 0) violations.push_back({"selection.max_draws", "must be 0 (all) or a number of draws"});
  return InvalidFields(violations);
}

DrawQuery QueryOf(const std::string& job, const v1::DrawSelection& selection) {
  return {.job = job,
          .version = selection.version(),
          .members = selection.members(),
          .include_failed = selection.include_failed(),
          .point = selection.point(),
          .every = selection.every(),
          .max_draws = selection.max_draws(),
          .chains = {selection.chains().begin(), selection.chains().end()}};
}

absl::StatusOr<EvaluateQuery> QueryOf(const v1::EvaluateRequest& request) {
  CHAINFLEET_RETURN_IF_ERROR(CheckSelection(request.selection()));
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<DrawKind> kinds, KindsFromProto(request.selection().kinds()));
  if (request.ece_bins() < 0 || request.ece_bins() > kMaxEceBins) {
    return InvalidFields({{"ece_bins", absl::StrCat("must be 1 to ", kMaxEceBins, " (default ", kDefaultEceBins,
                                                    "), is ", request.ece_bins())}});
  }
  return EvaluateQuery{.draws = QueryOf(request.job(), request.selection()),
                       .kinds = std::move(kinds),
                       .dataset = request.dataset(),
                       .ood_dataset = request.ood_dataset(),
                       .calibration_dataset = request.calibration_dataset(),
                       .ece_bins = request.ece_bins() == 0 ? kDefaultEceBins : request.ece_bins(),
                       .corruptions = {request.corruptions().begin(), request.corruptions().end()},
                       .flatness = request.flatness(),
                       .curve_points = request.curve_points(),
                       .example_rows = request.example_rows() == 0 ? kDefaultExampleRows : request.example_rows()};
}

EvaluationCodec ProtoEvaluationCodec() {
  return {.query = [](const std::string& bytes) -> absl::StatusOr<EvaluateQuery> {
            v1::EvaluateRequest request;
            if (!DecodeStored(bytes, &request)) return absl::InternalError("the stored request cannot be read");
            return QueryOf(request);
          },
          .result = [](const Evaluation& evaluation) { return EncodeStored(ToProto(evaluation)); }};
}

absl::StatusOr<v1::EvaluationOperation> RenderOperation(const EvaluationOperations::View& view) {
  const EvaluationRow& row = view.row;
  v1::EvaluationOperation operation;
  operation.set_id(row.id);
  operation.set_job_id(row.job);
  operation.set_state(StateOf(row.state));
  if (!DecodeStored(row.request, operation.mutable_request())) return Unreadable(row.id);
  if (!row.result.empty() && !DecodeStored(row.result, operation.mutable_evaluation())) return Unreadable(row.id);
  operation.set_error(std::string(row.error.message()));
  *operation.mutable_created_at() = ToProto(row.created_at);
  if (row.finished_at) *operation.mutable_finished_at() = ToProto(*row.finished_at);
  if (view.progress && row.state == EvaluationState::kRunning) {
    operation.mutable_progress()->set_rows_done(view.progress->rows_done);
    operation.mutable_progress()->set_rows_total(view.progress->rows_total);
  }
  return operation;
}

}  // namespace chainfleet
