// The changes of apply_change that say which objects are wanted: those of data sets and models, and garbage.
//
// An object that a data set or a model has or an upload holds is no garbage, in every state that a transaction leaves
// behind, and what was garbage once stays unwanted for ever: new objects have new names. So what a data set or a model
// has, exists: its upload held the objects before it wrote them, and no collector, however late, deletes them.
#pragma once

#include <optional>
#include <string>

#include "core/base/status.h"
#include "core/store/state_store/state_change.h"
#include "core/store/state_store/state_rows.h"

namespace chainfleet {

// As ApplyChange: errors end the transaction, refusals are in ApplyResult::status.
absl::StatusOr<ApplyResult> ApplyToObjects(const change::BeginUpload& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyToObjects(const change::EndUpload& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyToObjects(const change::PutDataset& c, absl::Time wall, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyToObjects(const change::DeleteDataset& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyToObjects(const change::PutModel& c, absl::Time wall, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyToObjects(const change::DeleteModel& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyToObjects(const change::NameGarbage& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyToObjects(const change::ForgetGarbage& c, StateRows* rows);

absl::StatusOr<std::optional<Dataset>> FindDataset(const std::string& name, StateRows* rows);
absl::StatusOr<std::optional<StoredModel>> FindModel(const std::string& name, StateRows* rows);

}  // namespace chainfleet
