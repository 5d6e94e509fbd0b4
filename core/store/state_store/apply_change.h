// The meaning of each StateChange, for the rows of any store. Each change first checks its preconditions and then
// writes, so that a refused change leaves nothing behind.
//
// The checks of a commit, in this order (the generation was checked when the transaction began): the same record
// exists: OK, replayed; epoch or holder not current: FAILED_PRECONDITION / LEASE_FENCED; chain final:
// FAILED_PRECONDITION / CHAIN_FINAL; index not next, parent not last, or step not above the committed one: ABORTED /
// PATH_CONFLICT. A commit without a segment that repeats the committed resume point is a replay too, unless it ends the
// lease: a chain may be handed back at the step that it has committed. A job ends in the transaction that makes its
// last chain final; the same transaction makes its last version.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/store/state_store/state_change.h"
#include "core/store/state_store/state_rows.h"

namespace chainfleet {

// An error comes from the database and must end the transaction. A refusal is in ApplyResult::status.
absl::StatusOr<ApplyResult> ApplyChange(const StateChange& change, absl::Time wall, StateRows* rows);

// The first check of every transaction: UNAVAILABLE / NOT_LEADER unless `mine` equals `stored`.
absl::Status CheckGeneration(int64_t mine, int64_t stored);

}  // namespace chainfleet
