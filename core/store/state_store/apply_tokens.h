// Applies changes of tokens, with their preconditions (state_change.h).
#pragma once

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/store/state_store/state_change.h"
#include "core/store/state_store/state_rows.h"

namespace chainfleet {

absl::StatusOr<ApplyResult> ApplyPart(const change::AddToken& change, absl::Time wall, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::RevokeToken& change, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::UseToken& change, StateRows* rows);

}  // namespace chainfleet
