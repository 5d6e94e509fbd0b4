#include "tests/sim/simulated_stores.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

absl::Status Dead() { return absl::UnavailableError("the process is dead"); }

}  // namespace

absl::Status SimulatedStateStore::Wait() const {
  site_.Yield();
  return process_.alive() ? absl::OkStatus() : Dead();
}

absl::StatusOr<std::vector<ApplyResult>> SimulatedStateStore::Apply(std::span<const StateChange> changes,
                                                                    absl::Time wall) {
  using Next = StoreFaults::NextCommit;
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  if (site_.faults.state_full) {
    std::vector<ApplyResult> results(changes.size());
    for (ApplyResult& result : results) {
      result.status = WithReason(absl::ResourceExhaustedError("no space for the state"), "DISK_FULL");
    }
    return results;
  }
  const auto unknown = WithReason(absl::InternalError("the line broke during COMMIT"), "OUTCOME_UNKNOWN");
  const Next next = std::exchange(site_.faults.next_commit, Next::kNothing);
  if (next != Next::kNothing) site_.Note(absl::StrCat(process_.name(), " fails at its commit, way ", next));
  if (next == Next::kUnknownBefore) return unknown;
  if (next == Next::kDieBefore) {
    process_.Kill();
    return Dead();
  }
  auto results = store_->Apply(changes, wall);
  for (size_t i = 0; results.ok() && i < changes.size(); ++i) Record(changes[i], (*results)[i]);
  if (next == Next::kUnknownAfter) return unknown;
  if (next == Next::kDieAfter) process_.Kill();
  return results;
}

void SimulatedStateStore::Record(const StateChange& change, const ApplyResult& result) {
  if (std::holds_alternative<change::CommitProgress>(change)) site_.replayed += result.replayed;
  if (!result.status.ok() || result.replayed) return;
  if (const auto* grant = std::get_if<change::GrantLease>(&change)) {
    site_.Note(
        absl::StrCat("granted ", ToString(grant->chain), " epoch ", grant->lease_epoch, " to ", grant->incarnation));
    site_.history.Add(
        grant->chain,
        {.kind = History::Event::Kind::kGranted, .lease_epoch = grant->lease_epoch, .holder = grant->incarnation});
  } else if (const auto* commit = std::get_if<change::CommitProgress>(&change)) {
    const ProgressCommit& c = *commit;
    site_.Note(
        absl::StrCat("committed ", ToString(c.chain), " epoch ", c.lease_epoch, " step ", c.resume_point.step,
                     c.segment ? absl::StrCat(" draws ", c.segment->first_index, "+", c.segment->num_draws()) : "",
                     c.ends_as ? absl::StrCat(" ends as ", ToString(*c.ends_as)) : ""));
    site_.history.Add(c.chain, {.kind = History::Event::Kind::kAccepted,
                                .lease_epoch = c.lease_epoch,
                                .holder = commit->incarnation,
                                .step = c.resume_point.step});
  }
}

absl::StatusOr<std::vector<SegmentRecord>> SimulatedStateStore::ListSegments(const SegmentQuery& query) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->ListSegments(query);
}
absl::StatusOr<std::vector<ResumeRow>> SimulatedStateStore::ListResumePoints(const std::string& job) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->ListResumePoints(job);
}
absl::StatusOr<SegmentRecord> SimulatedStateStore::FindSegment(const std::string& job, const std::string& object) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->FindSegment(job, object);
}
absl::StatusOr<Version> SimulatedStateStore::FindVersion(const std::string& job, int64_t number) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->FindVersion(job, number);
}
absl::StatusOr<std::vector<Version>> SimulatedStateStore::ListVersions(const std::string& job, int64_t after,
                                                                       int32_t limit) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->ListVersions(job, after, limit);
}
absl::StatusOr<std::vector<ExpiredObject>> SimulatedStateStore::ListExpired(int64_t last, int32_t limit) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->ListExpired(last, limit);
}
absl::StatusOr<int64_t> SimulatedStateStore::LastExpired() {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->LastExpired();
}
absl::StatusOr<std::vector<SegmentRecord>> SimulatedStateStore::ListCorrupt(const SegmentCursor& after, int32_t limit) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->ListCorrupt(after, limit);
}
absl::StatusOr<int64_t> SimulatedStateStore::CountCorrupt() {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->CountCorrupt();
}
absl::StatusOr<std::vector<EvaluationRow>> SimulatedStateStore::ListEvaluations(const EvaluationQuery& query) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->ListEvaluations(query);
}
absl::StatusOr<EvaluationRow> SimulatedStateStore::FindEvaluation(const std::string& id, const std::string& tenant) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->FindEvaluation(id, tenant);
}

absl::StatusOr<std::string> SimulatedStateStore::FindFinding(const std::string& job, const std::string& part) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->FindFinding(job, part);
}
absl::StatusOr<std::vector<FindingName>> SimulatedStateStore::ListFindings(const FindingName& after, int32_t limit) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->ListFindings(after, limit);
}
absl::StatusOr<bool> SimulatedStateStore::MayCommit(const ChainId& chain, int64_t lease_epoch) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->MayCommit(chain, lease_epoch);
}
absl::StatusOr<ChainReferences> SimulatedStateStore::ReferencesOfChain(const ChainId& chain) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->ReferencesOfChain(chain);
}
absl::StatusOr<std::vector<ChainSweep>> SimulatedStateStore::ListSweeps(int64_t after, int32_t limit) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->ListSweeps(after, limit);
}
absl::StatusOr<std::vector<std::string>> SimulatedStateStore::ListGarbage(const std::string& after, int32_t limit) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return store_->ListGarbage(after, limit);
}

absl::Status SimulatedBlobStore::Wait() const {
  site_.Yield();
  if (!process_.alive()) return Dead();
  if (site_.objects_in_bucket && site_.faults.bucket_away) return absl::UnavailableError("the bucket does not answer");
  return absl::OkStatus();
}

absl::Status SimulatedBlobStore::Put(const std::string& name, const ByteSource& content) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return target_->Put(name, content);
}
absl::Status SimulatedBlobStore::Replace(const std::string& name, const ByteSource& content) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return target_->Replace(name, content);
}
absl::StatusOr<std::string> SimulatedBlobStore::Get(const std::string& name) const {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return target_->Get(name);
}
absl::StatusOr<std::string> SimulatedBlobStore::GetRange(const std::string& name, int64_t offset,
                                                         int64_t length) const {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return target_->GetRange(name, offset, length);
}
absl::StatusOr<int64_t> SimulatedBlobStore::SizeBytes(const std::string& name) const {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return target_->SizeBytes(name);
}
absl::StatusOr<std::vector<std::string>> SimulatedBlobStore::List(const std::string& prefix) const {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  return target_->List(prefix);
}
absl::Status SimulatedBlobStore::Delete(const std::string& name) {
  CHAINFLEET_RETURN_IF_ERROR(Wait());
  site_.Note(absl::StrCat(process_.name(), " deletes ", name));
  return target_->Delete(name);
}

}  // namespace chainfleet
