#include "core/store/state_store/apply_objects.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/limits.h"
#include "core/domain/no_such.h"

namespace chainfleet {
namespace {

std::vector<std::string> ObjectsOf(const Dataset& dataset) {
  std::vector<std::string> objects;
  for (const DatasetShard& shard : dataset.shards) objects.push_back(shard.object.name);
  return objects;
}
std::vector<std::string> ObjectsOf(const StoredModel& model) { return {model.object.name}; }

// Makes the objects garbage, unless a data set, a model or an upload has them.
absl::Status Condemn(const std::vector<std::string>& objects, StateRows* rows) {
  for (const std::string& object : objects) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool stored, rows->IsContent(object));
    if (stored) continue;
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

absl::Status ExistsOtherwise(const char* kind, const std::string& name) {
  return absl::AlreadyExistsError(
      absl::StrCat(kind, " ", name, " exists with other content: delete it or choose another name"));
}

// OK if `upload` holds all `objects`.
absl::Status CheckHeld(const std::string& what, const std::string& upload, const std::vector<std::string>& objects,
                       StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> held, rows->ListHeld(upload));
  for (const std::string& object : objects) {
    if (std::ranges::find(held, object) != held.end()) continue;
    return WithReason(absl::FailedPreconditionError(
                          absl::StrCat(what, ": the upload does not hold object ", object, ": put it again")),
                      "NOT_HELD");
  }
  return absl::OkStatus();
}

absl::Status Replace(const Dataset& dataset, StateRows* rows) {
  CHAINFLEET_RETURN_IF_ERROR(rows->DeleteDataset(ContentKey(dataset)));
  return rows->InsertDataset(dataset);
}
absl::Status Replace(const StoredModel& model, StateRows* rows) {
  CHAINFLEET_RETURN_IF_ERROR(rows->DeleteModel(ContentKey(model)));
  return rows->InsertModel(model);
}

// Changes the tenants with which the item is shared.
template <typename Item>
absl::StatusOr<ApplyResult> Share(const change::ShareContent& c, std::optional<Item>* item, StateRows* rows) {
  if (!*item) return Refused(NoSuch(c.is_model ? "model" : "dataset", c.key));
  std::set<std::string> with((*item)->shared_with.begin(), (*item)->shared_with.end());
  if (c.stop && c.tenants.empty()) with.clear();
  for (const std::string& tenant : c.tenants) c.stop ? (void)with.erase(tenant) : (void)with.insert(tenant);
  if (with.size() > limits::kMaxTenantsSharedWith) {
    return Refused(InvalidFields(
        {{"tenants", absl::StrCat("would be ", with.size(), ", the most is ", limits::kMaxTenantsSharedWith)}}));
  }
  (*item)->shared_with.assign(with.begin(), with.end());
  CHAINFLEET_RETURN_IF_ERROR(Replace(**item, rows));
  return ApplyResult();
}

// Registers the data set, or returns the one that exists, whose classes may get other names.
absl::StatusOr<ApplyResult> Register(const change::PutDataset& c, absl::Time wall, StateRows* rows) {
  ApplyResult result;
  CHAINFLEET_ASSIGN_OR_RETURN(result.dataset, rows->FindDataset(ContentKey(c.dataset)));
  if (result.dataset) {
    if (result.dataset->digest != c.dataset.digest) {
      result.status = ExistsOtherwise("dataset", c.dataset.name);
    } else if (!c.dataset.class_names.empty() && c.dataset.class_names != result.dataset->class_names) {
      result.dataset->class_names = c.dataset.class_names;
      CHAINFLEET_RETURN_IF_ERROR(Replace(*result.dataset, rows));
    }
    return result;
  }
  const std::string what = absl::StrCat("dataset ", c.dataset.name);
  if (absl::Status held = CheckHeld(what, c.upload, ObjectsOf(c.dataset), rows); !held.ok()) return Refused(held);
  result.dataset = c.dataset;
  result.dataset->created_at = wall;
  CHAINFLEET_RETURN_IF_ERROR(rows->InsertDataset(*result.dataset));
  return result;
}
absl::StatusOr<ApplyResult> Register(const change::PutModel& c, absl::Time wall, StateRows* rows) {
  ApplyResult result;
  CHAINFLEET_ASSIGN_OR_RETURN(result.model, rows->FindModel(ContentKey(c.model)));
  if (result.model) {
    if (result.model->object.sha256 != c.model.object.sha256) result.status = ExistsOtherwise("model", c.model.name);
    return result;
  }
  const std::string what = absl::StrCat("model ", c.model.name);
  if (absl::Status held = CheckHeld(what, c.upload, ObjectsOf(c.model), rows); !held.ok()) return Refused(held);
  result.model = c.model;
  result.model->created_at = wall;
  CHAINFLEET_RETURN_IF_ERROR(rows->InsertModel(*result.model));
  return result;
}

// Names the jobs of the owner, and tells of others only that there are some.
absl::Status InUse(const std::string& what, const std::string& owner, const std::vector<UseByJob>& jobs) {
  std::vector<std::string> names;
  for (const UseByJob& job : jobs) {
    if (job.tenant == owner) names.push_back(job.id);
  }
  if (names.size() < jobs.size()) names.push_back("jobs of other tenants");
  return WithReason(absl::FailedPreconditionError(
                        absl::StrCat(what, " is used by ", absl::StrJoin(names, ", "), ": delete these jobs first")),
                    "IN_USE");
}

}  // namespace

absl::StatusOr<ApplyResult> ApplyPart(const change::BeginUpload& c, StateRows* rows) {
  if (c.repairs) {
    for (const std::string& object : c.objects) {
      CHAINFLEET_ASSIGN_OR_RETURN(const bool stored, rows->IsContent(object));
      if (stored) continue;
      return Refused(
          WithReason(absl::AbortedError("the dataset or model was deleted while the same was put: put it again"),
                     "BEING_DELETED"));
    }
  }
  for (const std::string& object : c.objects) CHAINFLEET_RETURN_IF_ERROR(rows->HoldObject(c.upload, object));
  return ApplyResult();
}

absl::StatusOr<ApplyResult> ApplyPart(const change::EndUpload& c, StateRows* rows) {
  CHAINFLEET_RETURN_IF_ERROR(End(c.upload, rows));
  return ApplyResult();
}

absl::StatusOr<ApplyResult> ApplyPart(const change::PutDataset& c, absl::Time wall, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(ApplyResult result, Register(c, wall, rows));
  CHAINFLEET_RETURN_IF_ERROR(End(c.upload, rows));
  return result;
}

absl::StatusOr<ApplyResult> ApplyPart(const change::DeleteDataset& c, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<Dataset> dataset, rows->FindDataset(c.key));
  if (!dataset) return Refused(NoSuch("dataset", c.key));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<UseByJob> jobs, rows->JobsOfDataset(c.key));
  if (!jobs.empty()) return Refused(InUse(absl::StrCat("dataset ", dataset->name), dataset->tenant, jobs));
  CHAINFLEET_RETURN_IF_ERROR(rows->DeleteDataset(c.key));
  CHAINFLEET_RETURN_IF_ERROR(Condemn(ObjectsOf(*dataset), rows));
  return ApplyResult();
}

absl::StatusOr<ApplyResult> ApplyPart(const change::PutModel& c, absl::Time wall, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(ApplyResult result, Register(c, wall, rows));
  CHAINFLEET_RETURN_IF_ERROR(End(c.upload, rows));
  return result;
}

absl::StatusOr<ApplyResult> ApplyPart(const change::DeleteModel& c, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<StoredModel> model, rows->FindModel(c.key));
  if (!model) return Refused(NoSuch("model", c.key));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<UseByJob> jobs, rows->JobsOfModel(c.key));
  if (!jobs.empty()) return Refused(InUse(absl::StrCat("model ", model->name), model->tenant, jobs));
  CHAINFLEET_RETURN_IF_ERROR(rows->DeleteModel(c.key));
  CHAINFLEET_RETURN_IF_ERROR(Condemn(ObjectsOf(*model), rows));
  return ApplyResult();
}

absl::StatusOr<ApplyResult> ApplyPart(const change::ShareContent& c, StateRows* rows) {
  std::optional<Dataset> dataset;
  std::optional<StoredModel> model;
  if (c.is_model) {
    CHAINFLEET_ASSIGN_OR_RETURN(model, rows->FindModel(c.key));
  } else {
    CHAINFLEET_ASSIGN_OR_RETURN(dataset, rows->FindDataset(c.key));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(ApplyResult result, c.is_model ? Share(c, &model, rows) : Share(c, &dataset, rows));
  result.dataset = std::move(dataset);
  result.model = std::move(model);
  return result;
}

absl::StatusOr<ApplyResult> ApplyPart(const change::NameGarbage& c, StateRows* rows) {
  CHAINFLEET_RETURN_IF_ERROR(Condemn(c.objects, rows));
  return ApplyResult();
}

absl::StatusOr<ApplyResult> ApplyPart(const change::ForgetGarbage& c, StateRows* rows) {
  for (const std::string& object : c.objects) CHAINFLEET_RETURN_IF_ERROR(rows->RemoveGarbage(object));
  return ApplyResult();
}

}  // namespace chainfleet
