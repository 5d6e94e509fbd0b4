#include "core/store/state_store/apply_objects.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace chainfleet {
namespace {

ApplyResult Refused(absl::Status status) {
  ApplyResult result;
  result.status = std::move(status);
  return result;
}

// Those that lost a reference become garbage, unless they have another.
template <typename Objects>
absl::Status Condemn(const Objects& objects, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<Dataset> datasets, rows->ListDatasets());
  std::set<std::string> wanted;
  for (const Dataset& dataset : datasets) {
    for (const DatasetShard& shard : dataset.shards) wanted.insert(shard.object.name);
  }
  for (const std::string& object : objects) {
    if (wanted.contains(object)) continue;
    CHAINFLEET_ASSIGN_OR_RETURN(const bool held, rows->IsHeld(object));
    if (!held) CHAINFLEET_RETURN_IF_ERROR(rows->AddGarbage(object));
  }
  return absl::OkStatus();
}

absl::Status End(const std::optional<std::string>& upload, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> held, rows->ListHeld(upload));
  if (held.empty()) return absl::OkStatus();
  CHAINFLEET_RETURN_IF_ERROR(rows->DropHeld(upload));
  return Condemn(held, rows);
}

// Registers the data set, or returns the one that is there.
absl::StatusOr<ApplyResult> Register(const change::PutDataset& c, absl::Time wall, StateRows* rows) {
  ApplyResult result;
  CHAINFLEET_ASSIGN_OR_RETURN(result.dataset, FindDataset(c.dataset.name, rows));
  if (result.dataset) {
    if (result.dataset->digest != c.dataset.digest) {
      result.status = absl::AlreadyExistsError(
          absl::StrCat("dataset ", c.dataset.name, " exists with other content: delete it or choose another name"));
    }
    return result;
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> held, rows->ListHeld(c.upload));
  for (const DatasetShard& shard : c.dataset.shards) {
    if (std::ranges::find(held, shard.object.name) != held.end()) continue;
    return Refused(WithReason(
        absl::FailedPreconditionError(absl::StrCat("dataset ", c.dataset.name, ": upload ", c.upload,
                                                   " does not hold object ", shard.object.name, ": put it again")),
        "NOT_HELD"));
  }
  result.dataset = c.dataset;
  result.dataset->created_at = wall;
  CHAINFLEET_RETURN_IF_ERROR(rows->InsertDataset(*result.dataset));
  return result;
}

}  // namespace

absl::StatusOr<ApplyResult> ApplyToObjects(const change::BeginUpload& c, StateRows* rows) {
  for (const std::string& object : c.objects) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool deleting, rows->IsBeingDeleted(object));
    if (!deleting) continue;
    return Refused(WithReason(
        absl::AbortedError(absl::StrCat("object ", object, " of a deleted dataset is going right now: put it again")),
        "BEING_DELETED"));
  }
  for (const std::string& object : c.objects) {
    CHAINFLEET_RETURN_IF_ERROR(rows->RemoveGarbage(object));
    CHAINFLEET_RETURN_IF_ERROR(rows->HoldObject(c.upload, object));
  }
  return ApplyResult();
}

absl::StatusOr<ApplyResult> ApplyToObjects(const change::EndUpload& c, StateRows* rows) {
  CHAINFLEET_RETURN_IF_ERROR(End(c.upload, rows));
  return ApplyResult();
}

absl::StatusOr<ApplyResult> ApplyToObjects(const change::PutDataset& c, absl::Time wall, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(ApplyResult result, Register(c, wall, rows));
  CHAINFLEET_RETURN_IF_ERROR(End(c.upload, rows));
  return result;
}

absl::StatusOr<ApplyResult> ApplyToObjects(const change::DeleteDataset& c, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<Dataset> dataset, FindDataset(c.name, rows));
  if (!dataset) return Refused(absl::NotFoundError(absl::StrCat("no dataset ", c.name)));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> jobs, rows->JobsOfDataset(c.name));
  if (!jobs.empty()) {
    return Refused(
        WithReason(absl::FailedPreconditionError(absl::StrCat("dataset ", c.name, " is used by ",
                                                              absl::StrJoin(jobs, ", "), ": delete these jobs first")),
                   "IN_USE"));
  }
  CHAINFLEET_RETURN_IF_ERROR(rows->DeleteDataset(c.name));
  std::vector<std::string> objects;
  for (const DatasetShard& shard : dataset->shards) objects.push_back(shard.object.name);
  CHAINFLEET_RETURN_IF_ERROR(Condemn(objects, rows));
  return ApplyResult();
}

absl::StatusOr<ApplyResult> ApplyToObjects(const change::StartDeleting& c, StateRows* rows) {
  ApplyResult result;
  for (const std::string& object : c.objects) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool garbage, rows->StartDeleting(object));
    if (garbage) result.objects.push_back(object);
  }
  return result;
}

absl::StatusOr<ApplyResult> ApplyToObjects(const change::ForgetGarbage& c, StateRows* rows) {
  for (const std::string& object : c.objects) CHAINFLEET_RETURN_IF_ERROR(rows->RemoveGarbage(object));
  return ApplyResult();
}

absl::StatusOr<std::optional<Dataset>> FindDataset(const std::string& name, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<Dataset> datasets, rows->ListDatasets());
  const auto found = std::ranges::find(datasets, name, &Dataset::name);
  return found == datasets.end() ? std::nullopt : std::optional<Dataset>(std::move(*found));
}

}  // namespace chainfleet
