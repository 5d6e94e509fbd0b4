#include "server/rpc/selection_query.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/wire/field_wire.h"
#include "core/wire/predict_wire.h"
#include "core/wire/stored_message.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

constexpr int kMostNames = 256;  // most kinds or corruptions in a request

// INVALID_ARGUMENT, before a long list is copied, searched and stored.
absl::Status CheckLength(const char* field, int length, int most) {
  if (length <= most) return absl::OkStatus();
  return InvalidFields({{field, absl::StrCat("has ", length, " entries, at most ", most, " are possible")}});
}

// The field of v1.DrawSelection that DrawQuery has not.
struct KindsAsked {
  std::vector<DrawKind> kinds;
  static void Fields(auto& self, auto&& visit) { visit("kinds", self.kinds); }
};

absl::Status Unreadable(const std::string& id) {
  return absl::InternalError(absl::StrCat("evaluation ", id, " cannot be read from the store: start it again"));
}

// The proto's values are the enum's.
constexpr v1::EvaluationOperation::State StateOf(EvaluationState state) {
  return static_cast<v1::EvaluationOperation::State>(state);
}
static_assert(StateOf(EvaluationState::kRunning) == v1::EvaluationOperation::RUNNING &&
              StateOf(EvaluationState::kSucceeded) == v1::EvaluationOperation::SUCCEEDED &&
              StateOf(EvaluationState::kFailed) == v1::EvaluationOperation::FAILED &&
              StateOf(EvaluationState::kCancelled) == v1::EvaluationOperation::CANCELLED);

}  // namespace

absl::Status CheckSelection(const v1::DrawSelection& selection) {
  CHAINFLEET_RETURN_IF_ERROR(CheckLength("selection.chains", selection.chains_size(), limits::kMaxChainsPerJob));
  CHAINFLEET_RETURN_IF_ERROR(CheckLength("selection.kinds", selection.kinds_size(), kMostNames));
  std::vector<FieldViolation> violations;
  CheckBounds(ParsedPlain<DrawQuery>(selection), "selection", &violations);
  return InvalidFields(violations);
}

DrawQuery QueryOf(const std::string& job, const v1::DrawSelection& selection) {
  DrawQuery query = ParsedPlain<DrawQuery>(selection);
  query.job = job;
  return query;
}

absl::StatusOr<std::vector<DrawKind>> KindsOf(const v1::DrawSelection& selection) {
  CHAINFLEET_ASSIGN_OR_RETURN(KindsAsked asked, Parsed<KindsAsked>(selection));
  return std::move(asked.kinds);
}

absl::StatusOr<EvaluateQuery> QueryOf(const v1::EvaluateRequest& request) {
  CHAINFLEET_RETURN_IF_ERROR(CheckSelection(request.selection()));
  CHAINFLEET_RETURN_IF_ERROR(CheckLength("corruptions", request.corruptions_size(), kMostNames));
  if (!request.selection().weights().empty()) {
    return InvalidFields({{"selection.weights",
                           "is for predictions: with stacking_dataset, an evaluation scores averages with weights"}});
  }
  EvaluateQuery query = ParsedPlain<EvaluateQuery>(request);
  if (const std::string wrong = OutOfBounds(query.ece_bins, Between(1, 1000)); !wrong.empty()) {
    return InvalidFields({{"ece_bins", wrong}});
  }
  query.draws = QueryOf(request.job(), request.selection());
  CHAINFLEET_ASSIGN_OR_RETURN(query.kinds, KindsOf(request.selection()));
  return query;
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
  if (operation.has_evaluation()) operation.mutable_evaluation()->set_id(row.id);  // the stored result has none
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
