// Applies the changes to versions, aliases and retention.
//
// After every transaction, the version that an alias names exists, its job is not to be deleted, and its draws are as
// complete as when it was named. An alias and a job of one tenant never have the same name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/store/state_store/state_change.h"
#include "core/store/state_store/state_rows.h"

namespace chainfleet {

// As ApplyChange: errors end the transaction; refusals are in ApplyResult::status.
absl::StatusOr<ApplyResult> ApplyPart(const change::CreateVersion& c, absl::Time wall, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::DeleteVersion& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::SetAlias& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::DeleteAlias& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::ExpireSegments& c, StateRows* rows);
absl::StatusOr<ApplyResult> ApplyPart(const change::ReleaseExpired& c, StateRows* rows);

// Makes a version of the committed draws, or returns the newest one if it has them all. nullopt if the job has no
// draws.
absl::StatusOr<std::optional<Version>> MakeVersion(const std::string& job, absl::Time wall, StateRows* rows);

// NOT_FOUND.
absl::Status NoSuchVersion(const std::string& job, int64_t number);

// Checks parts of the preconditions of other changes; the result is empty or a refusal. ALREADY_EXISTS / NAME_TAKEN: an
// alias of the tenant has the job's name or id.
absl::StatusOr<ApplyResult> CheckNoAlias(const std::string& tenant, const JobPlan& plan, StateRows* rows);
// FAILED_PRECONDITION / IN_USE, naming the aliases of the job, or of one version of it.
absl::StatusOr<ApplyResult> CheckUnnamed(const std::string& job, std::optional<int64_t> version, StateRows* rows);

}  // namespace chainfleet
