#include "core/store/state_store/apply_evaluations.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/domain/no_such.h"
#include "core/store/state_store/apply_versions.h"

namespace chainfleet {

absl::StatusOr<ApplyResult> ApplyPart(const change::CreateEvaluation& c, absl::Time wall, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto intent, rows->FindIntent(c.row.job));
  if (!intent || *intent == JobIntent::kDelete) {
    return Refused(NoSuch("job", c.row.job));
  }
  ApplyResult result;
  if (!c.row.request_id.empty()) {
    CHAINFLEET_ASSIGN_OR_RETURN(result.evaluation, rows->FindEvaluationOfRequest(c.row.tenant, c.row.request_id));
    if (result.evaluation) {
      result.replayed = true;
      return result;
    }
  }
  if (c.row.version > 0) {
    CHAINFLEET_ASSIGN_OR_RETURN(const auto found, rows->FindVersion(c.row.job, c.row.version));
    if (!found) return Refused(NoSuchVersion(c.row.job, c.row.version));
  }
  EvaluationRow row = c.row;
  row.state = EvaluationState::kRunning;
  row.created_at = wall;
  CHAINFLEET_ASSIGN_OR_RETURN(const bool inserted, rows->InsertEvaluation(&row));
  if (!inserted) return Refused(absl::AbortedError(absl::StrCat("evaluation id ", row.id, " is taken: start again")));
  CHAINFLEET_RETURN_IF_ERROR(rows->DropOldEvaluations(row.job, limits::kKeptEvaluations));
  result.evaluation = std::move(row);
  return result;
}

absl::StatusOr<ApplyResult> ApplyPart(const change::EndEvaluation& c, absl::Time wall, StateRows* rows) {
  ApplyResult result;
  CHAINFLEET_ASSIGN_OR_RETURN(result.evaluation, rows->FindEvaluation(c.id, std::nullopt));
  if (!result.evaluation) return Refused(NoSuch("evaluation", c.id));
  if (result.evaluation->state != EvaluationState::kRunning) {
    result.replayed = true;
    return result;
  }
  result.evaluation->state = c.state;
  result.evaluation->result = c.result;
  result.evaluation->error = c.error;
  result.evaluation->finished_at = wall;
  CHAINFLEET_RETURN_IF_ERROR(rows->UpdateEvaluation(*result.evaluation));
  return result;
}

}  // namespace chainfleet
