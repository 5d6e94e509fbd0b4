// What is stored about jobs and chains, and the changes that may be made to it. Each change carries its own
// preconditions; apply_change.h says which.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "core/base/limits.h"
#include "core/domain/snapshot.h"
#include "core/domain/worker_protocol.h"
#include "core/store/state_store/evaluation_row.h"

namespace chainfleet {

// A chain as stored, without its resume point: small, for the tables that cache it.
struct ChainRow {
  ChainId id;
  ChainState state = ChainState::kPending;
  int64_t lease_epoch = 0;          // of the newest grant, 0 before the first
  std::string worker, incarnation;  // of the newest grant; empty once that worker gave the chain back
  bool lease_committed = false;     // something was committed under the current epoch
  int32_t attempts = 0;             // leases ended without a commit since the last one
  int32_t crashes = 0;              // of these, by the loss of the worker's process
  int64_t step = 0;                 // committed
  int64_t num_draws = 0;            // committed
  DigestHex last_digest = FirstParentDigest();
  DigestHex resume_sha256;  // of the resume point, empty before the first
  std::string reason;       // why the last lease ended, or why the chain FAILED or DIVERGED

  // It may bring workers down: it is leased only to one that runs nothing else, until it commits.
  bool suspect() const { return crashes >= limits::kCrashesUntilAlone; }
};

// Whether the newest grant is that one, and was not given back.
inline bool HeldBy(const ChainRow& row, int64_t epoch, const std::string& worker, const std::string& incarnation) {
  return row.lease_epoch == epoch && row.worker == worker && row.incarnation == incarnation;
}

struct JobRow {
  int64_t sequence = 0;  // by creation, never reused
  std::string id;        // name and suffix, never used again
  std::string tenant = kDefaultTenant;
  std::string request_id;               // empty: none
  std::shared_ptr<const JobPlan> plan;  // shared, never changes
  JobIntent intent = JobIntent::kRun;   // as users asked
  absl::Time created_at;
  std::optional<absl::Time> finished_at;   // none while the state may still change
  std::map<int32_t, std::string> stopped;  // points that have enough by the stop rule, and why
  int32_t asked_chains = 0;                // of the job as it was created, if chains were added since
};

namespace change {

// The job with `plan->spec.chains` PENDING chains. ALREADY_EXISTS / REQUEST_ID_USED with the older job in the result;
// NOT_FOUND / DATASET_NOT_FOUND or MODEL_NOT_FOUND if its data set or its module is gone; ALREADY_EXISTS / NAME_TAKEN
// if an alias of the tenant has its name.
struct CreateJob {
  std::shared_ptr<const JobPlan> plan;
  std::string request_id;  // of the tenant's own
  std::string tenant = kDefaultTenant;
};

// CANCEL and DELETE also move every non-final chain to CANCELLED, FINISH every one that is PENDING or becomes so. A job
// that has ended can only be deleted: FAILED_PRECONDITION; one that aliases name cannot: FAILED_PRECONDITION / IN_USE.
struct SetIntent {
  std::string job;
  JobIntent intent = JobIntent::kRun;
};

// A new lease (the epoch is the next one, the chain PENDING), or the same again (same epoch, same holder, PENDING after
// its expiry or still LEASED). The intent must be RUN. Returns the resume point.
struct GrantLease {
  ChainId chain;
  int64_t lease_epoch = 0;
  std::string worker, incarnation;
};

// A lease ends without a commit: the chain is PENDING, or FAILED with `reason` after
// limits::kMaxAttemptsWithoutProgress, or at once if its job is wrong. A crash in company counts as long as the chain
// is no suspect, and fails no chain.
struct EndLease {
  // Whether the worker's process was lost with it, and other chains were leased to that process as well.
  enum class Crash { kNone, kInCompany, kAlone };
  ChainId chain;
  int64_t lease_epoch = 0;
  bool ordered = false;     // by the server: costs no attempt
  bool given_back = false;  // the worker has let go: it may no longer commit or lease again under this epoch
  std::string reason;
  Crash crash = Crash::kNone;
  bool hopeless = false;  // its job is wrong, every attempt would end so
};

using CommitProgress = ProgressCommit;

// A PENDING chain ends where it is: SUCCEEDED, for it is not needed any more, or FAILED, for it cannot go on.
// FAILED_PRECONDITION in any other state.
struct RetireChain {
  ChainId chain;
  std::string reason;
  bool failed = false;
};

// The point has enough draws, for good: its chains end where they are. One that was stopped before stays as it is.
// NOT_FOUND; FAILED_PRECONDITION for a job that is over or has no such point.
struct StopPoint {
  std::string job;
  int32_t point = 0;
  std::string why;
};

// `chains` in all, from now on; the new ones are PENDING, and the plan of the row says so. As many as there are:
// nothing changes. FAILED_PRECONDITION: fewer, more than limits::kMaxChainsPerJob, a sweep, an intent other than RUN
// and PAUSE, all are final, or the stop rule has ended it.
struct ScaleJob {
  std::string job;
  int32_t chains = 0;
};

// A new version if draws were committed since the newest one, which is returned otherwise.
// FAILED_PRECONDITION / NO_DRAWS. Those limits::kKeptVersions and more before it go, but for those in use.
struct CreateSnapshot {
  std::string job;
};

// Its number is never used again. NOT_FOUND; FAILED_PRECONDITION / IN_USE naming its aliases. The result has the
// newest version that is left.
struct DeleteSnapshot {
  std::string job;
  int64_t number = 0;
};

// `alias.name` means that version from now on, whatever it meant before. NOT_FOUND (job, version); ALREADY_EXISTS /
// NAME_TAKEN: a job of the tenant has the name; RESOURCE_EXHAUSTED / TOO_MANY_ALIASES. The result has the version, too.
struct SetAlias {
  Alias alias;
};

// NOT_FOUND.
struct DeleteAlias {
  std::string tenant, name;
};

// These segments of the chain become tombstones, but for those that hold draws of a version that an alias names. Their
// objects are referred to still, until ReleaseExpired: a prediction may be reading them. The result has the objects.
struct ExpireSegments {
  ChainId chain;
  std::vector<int64_t> first_indices;
};

// Nobody reads these objects any more, by their tickets (StateStore::ListExpired): they become garbage.
struct ReleaseExpired {
  std::vector<int64_t> tickets;
};

// The draws of `object` are left out of predictions from now on, or no longer. NOT_FOUND.
struct MarkCorrupt {
  std::string job, object;
  bool corrupt = true;
};

// Rows that PurgeJob deletes in one change. A page is short beside a store's timeouts and beside the commits that wait
// for it, however many rows the job has.
inline constexpr int32_t kPurgePage = 1000;

// After DELETE: a page of the job's rows goes, at the end its chains, whose objects are swept, and the job leaves
// Load(). The result has the change that goes on, none when the job is purged.
struct PurgeJob {
  std::string job;
  int32_t page = kPurgePage;
};

// Before the objects of a data set or of a model are written: `upload`, a name never used before, holds them until it
// ends, so that they are no garbage. Their names were never used before either, or else the upload `repairs`: it holds
// what a data set or a model has (ABORTED / BEING_DELETED if none has one of them any more, then it holds none).
struct BeginUpload {
  std::string upload;
  std::vector<std::string> objects;
  bool repairs = false;
};

// What it held becomes garbage, unless a data set, a model or another upload has it. None: all uploads, for their
// process died.
struct EndUpload {
  std::optional<std::string> upload;
};

// The same name and digest again is OK, another digest ALREADY_EXISTS. Ends the upload, which must hold every shard
// (FAILED_PRECONDITION / NOT_HELD), in any case.
struct PutDataset {
  Dataset dataset;
  std::string upload;
};

// FAILED_PRECONDITION / IN_USE naming the jobs. Its objects, unless another data set or an upload has them, become
// garbage. PERMISSION_DENIED / NOT_OWNER if `tenant` is given and another tenant put it.
struct DeleteDataset {
  std::string name;
  std::optional<std::string> tenant;  // nullopt: an operator asks
};

// The same for a TorchScript file, which is one object.
struct PutModel {
  StoredModel model;
  std::string upload;
};

struct DeleteModel {
  std::string name;
  std::optional<std::string> tenant;
};

// Objects of data sets and models that a store found where it looked, of incarnations before its own: what no data set,
// model or upload has of them becomes garbage, for nothing makes such a name again.
struct NameGarbage {
  std::vector<std::string> objects;
};

// These garbage objects were deleted.
struct ForgetGarbage {
  std::vector<std::string> objects;
};

// The chain may have objects that nothing will refer to. Also part of every change that raises its epoch, ends it or
// purges its job.
struct QueueSweep {
  ChainId chain;
};

// The objects of the chain were looked through; if it was queued again meanwhile that is another ticket.
struct EndSweep {
  int64_t ticket = 0;
};

// Of a job, and a version of it, that are there (NOT_FOUND). The row's id, job, tenant, request_id, request and version
// count; a request_id that the tenant has used answers with its row, replayed. ABORTED: the id is taken. Ended ones of
// the job beyond the newest limits::kKeptEvaluations go.
struct CreateEvaluation {
  EvaluationRow row;
};

// A RUNNING one ends as told; one that has ended stays as it is, replayed. NOT_FOUND: it went with its job.
struct EndEvaluation {
  std::string id;
  EvaluationState state = EvaluationState::kCancelled;
  std::string result;
  absl::Status error;
};

// What a job leaves to be looked at once it has ended, by the names of the parts: opaque bytes. What was kept before
// under the same name is replaced. NOT_FOUND: the job is gone or to be deleted.
struct KeepFindings {
  std::string job;
  std::map<std::string, std::string> parts;
};

}  // namespace change

using StateChange =
    std::variant<change::CreateJob, change::SetIntent, change::GrantLease, change::EndLease, change::CommitProgress,
                 change::RetireChain, change::CreateSnapshot, change::DeleteSnapshot, change::SetAlias,
                 change::DeleteAlias, change::ExpireSegments, change::ReleaseExpired, change::MarkCorrupt,
                 change::PurgeJob, change::BeginUpload, change::EndUpload, change::PutDataset, change::DeleteDataset,
                 change::PutModel, change::DeleteModel, change::NameGarbage, change::ForgetGarbage, change::QueueSweep,
                 change::EndSweep, change::CreateEvaluation, change::EndEvaluation, change::StopPoint, change::ScaleJob,
                 change::KeepFindings>;

// What became of one change. Rows are as the change left them; a cache copies them and decides nothing itself.
struct ApplyResult {
  absl::Status status;
  bool replayed = false;         // CommitProgress, CreateEvaluation or EndEvaluation that was there already
  std::vector<ChainRow> chains;  // those it touched
  std::optional<JobRow> job;     // if touched
  std::optional<Snapshot> snapshot;
  std::optional<ResumePoint> resume_point;  // of GrantLease
  std::optional<Dataset> dataset;           // of PutDataset
  std::optional<StoredModel> model;         // of PutModel
  std::vector<std::string> objects;         // of ExpireSegments
  std::optional<EvaluationRow> evaluation;  // of CreateEvaluation and EndEvaluation
  std::optional<change::PurgeJob> purge;    // of PurgeJob: what is left to do
};

// A change that was not made, and why.
inline ApplyResult Refused(absl::Status why) {
  ApplyResult result;
  result.status = std::move(why);
  return result;
}

}  // namespace chainfleet
