// Applies the changes to how much a job draws: sweep points that have enough, and added chains.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/status.h"
#include "core/store/state_store/state_change.h"
#include "core/store/state_store/state_rows.h"

namespace chainfleet {

// Adds the chains [first, end) of a job to the store and to the result: PENDING; with `only`, the others CANCELLED.
absl::Status AddChains(const std::string& job, int32_t first, int32_t end, std::optional<int32_t> only, StateRows* rows,
                       ApplyResult* result);

// As ApplyChange: errors end the transaction; refusals are in ApplyResult::status.
absl::StatusOr<ApplyResult> ApplyPart(const change::StopPoint& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::ScaleJob& c, StateRows* rows);

}  // namespace chainfleet
