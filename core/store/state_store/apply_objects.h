// Applies the changes to the objects of data sets and models, and to garbage.
//
// After every transaction, an object that a data set or a model has, or that an upload holds, is not garbage. Garbage
// is never wanted again, because new objects have new names. Therefore the objects of a data set or a model exist: its
// upload held them before it wrote them, and no collector, however late, deletes them.
#pragma once

#include <optional>
#include <string>

#include "core/base/status.h"
#include "core/store/state_store/state_change.h"
#include "core/store/state_store/state_rows.h"

namespace chainfleet {

// As ApplyChange: errors end the transaction; refusals are in ApplyResult::status.
absl::StatusOr<ApplyResult> ApplyPart(const change::BeginUpload& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::EndUpload& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::PutDataset& c, absl::Time wall, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::DeleteDataset& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::PutModel& c, absl::Time wall, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::DeleteModel& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::ShareContent& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::NameGarbage& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::ForgetGarbage& c, StateRows* rows);

}  // namespace chainfleet
