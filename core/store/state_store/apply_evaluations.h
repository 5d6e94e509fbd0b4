// Applies the changes to evaluations. A job keeps its running evaluations and the newest limits::kKeptEvaluations.
#pragma once

#include "core/base/status.h"
#include "core/store/state_store/state_change.h"
#include "core/store/state_store/state_rows.h"

namespace chainfleet {

// As ApplyChange: errors end the transaction; refusals are in ApplyResult::status.
absl::StatusOr<ApplyResult> ApplyPart(const change::CreateEvaluation& c, absl::Time wall, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::EndEvaluation& c, absl::Time wall, StateRows* rows);

}  // namespace chainfleet
