// Applies the changes to how much a job draws: sweep points that have enough, and added chains.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/store/state_store/state_change.h"
#include "core/store/state_store/state_rows.h"

namespace chainfleet {

// Adds the PENDING chains [first, end) of a job to the store and to the result.
absl::Status AddChains(const std::string& job, int32_t first, int32_t end, StateRows* rows, ApplyResult* result);

// As ApplyChange: errors end the transaction; refusals are in ApplyResult::status.
absl::StatusOr<ApplyResult> ApplyPart(const change::StopPoint& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::ScaleJob& c, StateRows* rows);

}  // namespace chainfleet
