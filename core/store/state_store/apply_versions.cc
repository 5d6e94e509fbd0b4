#include "core/store/state_store/apply_versions.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/limits.h"
#include "core/domain/no_such.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {
namespace {

absl::Status Taken(const std::string& name, const std::string& by) {
  return WithReason(absl::AlreadyExistsError(absl::StrCat(by, " has the name ", name, ": choose another")),
                    "NAME_TAKEN");
}

// Versions that aliases name or running evaluations read.
absl::StatusOr<std::set<int64_t>> VersionsInUse(const std::string& job, StateRows* rows) {
  std::set<int64_t> versions;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<Alias> aliases, rows->AliasesOfJob(job));
  for (const Alias& alias : aliases) versions.insert(alias.number);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<EvaluationRow> evaluations, rows->EvaluationsUnderWay(job));
  for (const EvaluationRow& evaluation : evaluations) versions.insert(evaluation.version);
  return versions;
}

// The number of first draws of the chain that belong to versions in use.
absl::StatusOr<int64_t> DrawsHeld(const ChainId& chain, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::set<int64_t> versions, VersionsInUse(chain.job, rows));
  int64_t held = 0;
  for (const int64_t version : versions) {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<Version> found, rows->FindVersion(chain.job, version));
    if (found) held = std::max(held, found->DrawsOf(chain.index));
  }
  return held;
}

// Keeps kKeptVersions versions besides those in use; versions that went out of use since are dropped, too. A restored
// store skips numbers that were given out after its backup. The skipped numbers do not count as age.
absl::Status DropOldVersions(const std::string& job, int64_t newest, StateRows* rows) {
  const int64_t last = newest % kRestoredLeap - limits::kKeptVersions;
  if (last <= 0) return absl::OkStatus();
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<int64_t> old, rows->VersionNumbers(job, newest - limits::kKeptVersions));
  std::erase_if(old, [last](int64_t number) { return number % kRestoredLeap > last; });
  if (old.empty()) return absl::OkStatus();
  CHAINFLEET_ASSIGN_OR_RETURN(const std::set<int64_t> in_use, VersionsInUse(job, rows));
  for (const int64_t number : old) {
    if (!in_use.contains(number)) CHAINFLEET_RETURN_IF_ERROR(rows->DeleteVersion(job, number));
  }
  return absl::OkStatus();
}

// Refuses if a running evaluation reads the version.
absl::StatusOr<ApplyResult> CheckUnevaluated(const std::string& job, int64_t version, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<EvaluationRow> evaluations, rows->EvaluationsUnderWay(job));
  const auto found = std::ranges::find(evaluations, version, &EvaluationRow::version);
  if (found == evaluations.end()) return ApplyResult();
  return Refused(WithReason(
      absl::FailedPreconditionError(absl::StrCat("evaluation ", found->id, " is computed on version ", version,
                                                 " of job ", job, ": wait until it has ended, or cancel it")),
      "IN_USE"));
}

// Refuses to delete a version that an alias names or a running evaluation reads.
absl::StatusOr<ApplyResult> CheckUnused(const std::string& job, int64_t version, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(ApplyResult unnamed, CheckUnnamed(job, version, rows));
  return unnamed.status.ok() ? CheckUnevaluated(job, version, rows) : unnamed;
}

}  // namespace

absl::Status NoSuchVersion(const std::string& job, int64_t number) {
  return WithReason(absl::NotFoundError(absl::StrCat("job ", job, " has no version ", number,
                                                     ": list them with `chainfleet get versions ", job, "`")),
                    "VERSION_NOT_FOUND");
}

absl::StatusOr<ApplyResult> ApplyPart(const change::CreateVersion& c, absl::Time wall, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto intent, rows->FindIntent(c.job));
  if (!intent) return Refused(NoSuch("job", c.job));
  ApplyResult result;
  CHAINFLEET_ASSIGN_OR_RETURN(result.version, MakeVersion(c.job, wall, rows));
  if (!result.version) {
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t unfinished, rows->CountUnfinishedChains(c.job));
    result.status = WithReason(absl::FailedPreconditionError(absl::StrCat(
                                   "job ", c.job,
                                   unfinished > 0 ? " has no draws yet: wait for its first commit"
                                                  : " ended without a draw: `chainfleet describe` says why")),
                               "NO_DRAWS");
  }
  return result;
}

absl::StatusOr<ApplyResult> ApplyPart(const change::DeleteVersion& c, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto found, rows->FindVersion(c.job, c.number));
  if (!found) return Refused(NoSuchVersion(c.job, c.number));
  CHAINFLEET_ASSIGN_OR_RETURN(ApplyResult result, CheckUnused(c.job, c.number, rows));
  if (!result.status.ok()) return result;
  CHAINFLEET_RETURN_IF_ERROR(rows->DeleteVersion(c.job, c.number));
  CHAINFLEET_ASSIGN_OR_RETURN(result.version, rows->NewestVersion(c.job));
  return result;
}

absl::StatusOr<ApplyResult> ApplyPart(const change::SetAlias& c, StateRows* rows) {
  const Alias& alias = c.alias;
  CHAINFLEET_ASSIGN_OR_RETURN(const auto intent, rows->FindIntent(alias.job));
  if (!intent || *intent == JobIntent::kDelete) {
    return Refused(NoSuch("job", alias.job));
  }
  ApplyResult result;
  CHAINFLEET_ASSIGN_OR_RETURN(result.version, rows->FindVersion(alias.job, alias.number));
  if (!result.version) return Refused(NoSuchVersion(alias.job, alias.number));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool of_job, rows->IsJobName(alias.tenant, alias.name));
  if (of_job) return Refused(Taken(alias.name, "a job"));
  CHAINFLEET_ASSIGN_OR_RETURN(const auto before, rows->FindAlias(alias.tenant, alias.name));
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t count, rows->CountAliases(alias.tenant));
  if (!before && count >= limits::kMaxAliases) {
    return Refused(BoundReached(
        "tenant_aliases", absl::StrCat("there are ", count, " aliases already: delete one first"), "TOO_MANY_ALIASES"));
  }
  CHAINFLEET_RETURN_IF_ERROR(rows->PutAlias(alias));
  return result;
}

absl::StatusOr<ApplyResult> ApplyPart(const change::DeleteAlias& c, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto alias, rows->FindAlias(c.tenant, c.name));
  if (!alias) return Refused(NoSuch("alias", c.name));
  CHAINFLEET_RETURN_IF_ERROR(rows->DeleteAlias(c.tenant, c.name));
  return ApplyResult();
}

absl::StatusOr<ApplyResult> ApplyPart(const change::ExpireSegments& c, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t held, DrawsHeld(c.chain, rows));
  ApplyResult result;
  for (const int64_t first_index : c.first_indices) {
    if (first_index < held) continue;
    CHAINFLEET_ASSIGN_OR_RETURN(std::optional<std::string> object, rows->Tombstone(c.chain, first_index));
    if (!object) continue;
    CHAINFLEET_RETURN_IF_ERROR(rows->AddExpired(c.chain, *object));
    result.objects.push_back(*std::move(object));
  }
  return result;
}

absl::StatusOr<ApplyResult> ApplyPart(const change::ReleaseExpired& c, StateRows* rows) {
  for (const int64_t ticket : c.tickets) {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<std::string> object, rows->TakeExpired(ticket));
    if (object) CHAINFLEET_RETURN_IF_ERROR(rows->AddGarbage(*object));
  }
  return ApplyResult();
}

absl::StatusOr<std::optional<Version>> MakeVersion(const std::string& job, absl::Time wall, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ChainRow> chains, rows->ListChains(job));
  CHAINFLEET_ASSIGN_OR_RETURN(std::optional<Version> newest, rows->NewestVersion(job));
  Version version{job, 0, {}, wall};
  for (const ChainRow& row : chains) version.draws_of_chain.push_back(row.num_draws);
  if (newest && newest->draws_of_chain == version.draws_of_chain) return newest;
  if (std::ranges::all_of(version.draws_of_chain, [](int64_t n) { return n == 0; })) return std::optional<Version>();
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t last, rows->LastVersionNumber(job));
  version.number = last + 1;
  CHAINFLEET_RETURN_IF_ERROR(rows->InsertVersion(version));
  CHAINFLEET_RETURN_IF_ERROR(DropOldVersions(job, version.number, rows));
  return std::optional<Version>(std::move(version));
}

absl::StatusOr<ApplyResult> CheckNoAlias(const std::string& tenant, const JobPlan& plan, StateRows* rows) {
  for (const std::string& name : {plan.spec.name, plan.job}) {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<Alias> alias, rows->FindAlias(tenant, name));
    if (alias) return Refused(Taken(name, "an alias"));
  }
  return ApplyResult();
}

absl::StatusOr<ApplyResult> CheckUnnamed(const std::string& job, std::optional<int64_t> version, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<Alias> aliases, rows->AliasesOfJob(job));
  std::erase_if(aliases, [&](const Alias& alias) { return version && alias.number != *version; });
  if (aliases.empty()) return ApplyResult();
  const auto name = [](std::string* out, const Alias& alias) { out->append(alias.name); };
  return Refused(WithReason(
      absl::FailedPreconditionError(absl::StrCat(version ? absl::StrCat("version ", *version, " of ") : "", "job ", job,
                                                 " is named by alias ", absl::StrJoin(aliases, ", ", name),
                                                 ": move or delete it first (`chainfleet alias`)")),
      "IN_USE"));
}

}  // namespace chainfleet
