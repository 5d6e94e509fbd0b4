// Stored records of jobs and chains, and the changes to them. Each change carries its own preconditions; apply_change.h
// documents them.
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
#include "core/domain/access_token.h"
#include "core/domain/version.h"
#include "core/domain/worker_protocol.h"
#include "core/store/state_store/evaluation_row.h"

namespace chainfleet {

// A chain as stored, without its resume point: small, because tables cache it.
struct ChainRow {
  ChainId id;
  ChainState state = ChainState::kPending;
  int64_t lease_epoch = 0;          // epoch of the newest grant, 0 before the first
  std::string worker, incarnation;  // holder by the newest grant; empty once that worker gave the chain back
  bool lease_committed = false;     // a commit was made under the current epoch
  int32_t attempts = 0;             // leases that ended without a commit since the last commit
  int32_t crashes = 0;              // the failures that were a loss of the worker's process
  int64_t step = 0;                 // committed
  int64_t num_draws = 0;            // committed
  DigestHex last_digest = FirstParentDigest();
  DigestHex resume_sha256;  // digest of the resume point; empty before the first
  std::string reason;       // why the last lease ended, or why the chain FAILED or DIVERGED
  static void Fields(auto& self, auto&& visit) {
    visit("job", self.id.job);
    visit("chain", self.id.index);
    visit("state", self.state);
    visit("lease_epoch", self.lease_epoch);
    visit("worker", self.worker);
    visit("incarnation", self.incarnation);
    visit("lease_committed", self.lease_committed);
    visit("attempts", self.attempts);
    visit("step", self.step);
    visit("num_draws", self.num_draws);
    visit("last_digest", self.last_digest);
    visit("resume_sha256", self.resume_sha256);
    visit("reason", self.reason);
    visit("crashes", self.crashes);
  }

  // The chain may crash workers: only a worker that runs nothing else may lease it, until it commits.
  bool suspect() const { return crashes >= limits::kCrashesUntilAlone; }
};

// True if the newest grant has this epoch and holder, and the chain was not given back.
inline bool HeldBy(const ChainRow& row, int64_t epoch, const std::string& worker, const std::string& incarnation) {
  return row.lease_epoch == epoch && row.worker == worker && row.incarnation == incarnation;
}

struct JobRow {
  int64_t sequence = 0;  // in order of creation, never reused
  std::string id;        // name and suffix, never reused
  std::string tenant = kDefaultTenant;
  std::string request_id;               // may be empty
  std::shared_ptr<const JobPlan> plan;  // shared, never changes
  JobIntent intent = JobIntent::kRun;   // as users asked
  absl::Time created_at;
  std::optional<absl::Time> finished_at;   // none while the state may still change
  std::map<int32_t, std::string> stopped;  // points that have enough by the stop rule, with the reason
  int32_t asked_chains = 0;                // number at creation, if chains were added since; else 0
  static void Fields(auto& self, auto&& visit) {
    visit("sequence", self.sequence);
    visit("id", self.id);
    visit("tenant", self.tenant);
    visit("request_id", self.request_id);
    visit("plan", self.plan);
    visit("intent", self.intent);
    visit("created", self.created_at);
    visit("finished", self.finished_at);
    visit("stopped", self.stopped);
    visit("asked_chains", self.asked_chains);
  }
};

namespace change {

// Creates the job with its chains PENDING; with `only_chain`, the others CANCELLED. ALREADY_EXISTS / REQUEST_ID_USED,
// with the older job in the result. NOT_FOUND / DATASET_NOT_FOUND or MODEL_NOT_FOUND: its data set or module does not
// exist any more. ALREADY_EXISTS / NAME_TAKEN: an alias of the tenant has its name.
struct CreateJob {
  std::shared_ptr<const JobPlan> plan;
  std::string request_id;  // chosen by the tenant
  std::string tenant = kDefaultTenant;
  std::optional<int32_t> only_chain = std::nullopt;
};

// CANCEL and DELETE also move every non-final chain to CANCELLED; FINISH moves every chain that is or becomes PENDING.
// A job that has ended can only be deleted, else FAILED_PRECONDITION. A job that aliases name cannot be deleted:
// FAILED_PRECONDITION / IN_USE.
struct SetIntent {
  std::string job;
  JobIntent intent = JobIntent::kRun;
};

// Grants a new lease (the next epoch, of a PENDING chain), or repeats the last grant (same epoch and holder, the chain
// PENDING after expiry or still LEASED). The intent must be RUN. The result has the resume point.
struct GrantLease {
  ChainId chain;
  int64_t lease_epoch = 0;
  std::string worker, incarnation;
};

// Ends a lease without a commit. The chain becomes PENDING, or FAILED with `reason` after
// limits::kMaxAttemptsWithoutProgress or if its job is wrong. A crash while other chains ran in the same process is
// counted until the chain is a suspect, but never fails a chain.
struct EndLease {
  // Says if the worker's process was lost: alone with this chain, or while it held other chains.
  enum class Crash { kNone, kInCompany, kAlone };
  ChainId chain;
  int64_t lease_epoch = 0;
  bool ordered = false;     // by the server: does not count as an attempt
  bool given_back = false;  // by the worker, which may no longer commit or lease again under this epoch
  std::string reason;
  Crash crash = Crash::kNone;
  bool hopeless = false;  // the job is wrong: every attempt would end like this
};

using CommitProgress = ProgressCommit;

// Ends a PENDING chain: SUCCEEDED if it is no longer needed, FAILED if it cannot continue. FAILED_PRECONDITION in any
// other state.
struct RetireChain {
  ChainId chain;
  std::string reason;
  bool failed = false;
};

// Stops a sweep point that has enough draws, for good: its chains end at their current step. A stopped point stays as
// it is. NOT_FOUND. FAILED_PRECONDITION: the job is over or has no such point.
struct StopPoint {
  std::string job;
  int32_t point = 0;
  std::string why;
};

// Sets the number of chains to `chains`; new ones are PENDING, and the plan in the row is updated. No change if it is
// the current number. FAILED_PRECONDITION: fewer chains, more than limits::kMaxChainsPerJob, a sweep, an intent other
// than RUN and PAUSE, all chains final, or the stop rule has ended the job. FAILED_PRECONDITION / SBC_JOB: of kind sbc.
struct ScaleJob {
  std::string job;
  int32_t chains = 0;
};

// Creates a version if draws were committed since the newest one, else returns the newest. FAILED_PRECONDITION /
// NO_DRAWS. Deletes versions older than the newest limits::kKeptVersions, except those in use.
struct CreateVersion {
  std::string job;
};

// Deletes a version; its number is never used again. NOT_FOUND. FAILED_PRECONDITION / IN_USE, naming its aliases. The
// result has the newest version that is left.
struct DeleteVersion {
  std::string job;
  int64_t number = 0;
};

// Points `alias.name` to the version from now on. NOT_FOUND (job, version). ALREADY_EXISTS / NAME_TAKEN: a job of the
// tenant has the name. RESOURCE_EXHAUSTED / TOO_MANY_ALIASES. The result has the version, too.
struct SetAlias {
  Alias alias;
};

// NOT_FOUND.
struct DeleteAlias {
  std::string tenant, name;
};

// Turns these segments of the chain into tombstones, except those with draws of a version that an alias names. Their
// objects stay referenced until ReleaseExpired, because a prediction may be reading them. The result has the objects.
struct ExpireSegments {
  ChainId chain;
  std::vector<int64_t> first_indices;
};

// Makes objects garbage that no call reads any more, by their tickets (StateStore::ListExpired).
struct ReleaseExpired {
  std::vector<int64_t> tickets;
};

// Excludes the draws of `object` from predictions, or includes them again. NOT_FOUND.
struct MarkCorrupt {
  std::string job, object;
  bool corrupt = true;
};

// Rows that PurgeJob deletes in one change. A page takes little time compared to a store's timeouts and to the commits
// that wait for it, however many rows the job has.
inline constexpr int32_t kPurgePage = 1000;

// Deletes a page of the rows of a job after DELETE. The last page deletes its chains, queues their objects for a
// garbage sweep, and removes the job from Load(). The result has the change for the next page, if any.
struct PurgeJob {
  std::string job;
  int32_t page = kPurgePage;
};

// Makes `upload`, a name never used before, hold the objects of a data set or a model before they are written, so that
// they are not garbage. Their names must be new, unless the upload `repairs`: then it holds objects that a data set or
// a model has (ABORTED / BEING_DELETED, and holds nothing, if none has one of them any more).
struct BeginUpload {
  std::string upload;
  std::vector<std::string> objects;
  bool repairs = false;
};

// Makes the objects of an upload garbage, unless a data set, a model or another upload has them. nullopt ends all
// uploads, because their process died.
struct EndUpload {
  std::optional<std::string> upload;
};

// Registers a data set of a tenant. The same name and digest again is OK, another digest is ALREADY_EXISTS. Ends the
// upload in any case; it must hold every shard (FAILED_PRECONDITION / NOT_HELD).
struct PutDataset {
  Dataset dataset;
  std::string upload;
};

// FAILED_PRECONDITION / IN_USE, naming the jobs of the owner. Its objects become garbage, unless another data set or an
// upload has them.
struct DeleteDataset {
  std::string key;  // ContentKey
};

// As PutDataset and DeleteDataset, for a TorchScript file, which is one object.
struct PutModel {
  StoredModel model;
  std::string upload;
};

struct DeleteModel {
  std::string key;
};

// Lets tenants use a data set or a model. NOT_FOUND. The result has it.
struct ShareContent {
  std::string key;
  bool is_model = false;
  std::vector<std::string> tenants;
  bool stop = false;  // takes the tenants off the list; all, if none are given
};

// Declares objects of data sets and models, found under former incarnations, garbage if no data set, model or upload
// has them: no such name will be made again.
struct NameGarbage {
  std::vector<std::string> objects;
};

// Forgets garbage objects that were deleted.
struct ForgetGarbage {
  std::vector<std::string> objects;
};

// Queues a chain that may have unreferenced objects. Part of every change that raises its epoch, ends it or purges its
// job.
struct QueueSweep {
  ChainId chain;
};

// The chain's objects were swept. If the chain was queued again meanwhile, it has another ticket.
struct EndSweep {
  int64_t ticket = 0;
};

// Creates an evaluation of a job and a version that exist (NOT_FOUND). Uses the row's id, job, tenant, request_id,
// request and version. For a request_id that the tenant has used, the result has that row, replayed. ABORTED: the id is
// taken. Deletes ended evaluations of the job beyond the newest limits::kKeptEvaluations.
struct CreateEvaluation {
  EvaluationRow row;
};

// Ends a RUNNING evaluation. One that has ended stays as it is, replayed. NOT_FOUND: it was deleted with its job.
struct EndEvaluation {
  std::string id;
  EvaluationState state = EvaluationState::kCancelled;
  std::string result;
  absl::Status error;
};

// Adds a token. The same SHA-256 again with the same contents is replayed, with others ALREADY_EXISTS / TOKEN_EXISTS.
// RESOURCE_EXHAUSTED / TOO_MANY_TOKENS. The result has the token.
struct AddToken {
  AccessToken token;
};

// Deletes the token. NOT_FOUND.
struct RevokeToken {
  std::string sha256;
};

// Counts a use of a token whose uses are limited. NOT_FOUND; RESOURCE_EXHAUSTED / TOKEN_USED_UP. The result has the
// token.
struct UseToken {
  std::string sha256;
};

// Keeps the findings of an ended job, by part name, as opaque bytes. Replaces a part of the same name. NOT_FOUND: the
// job is purged or to be deleted.
struct KeepFindings {
  std::string job;
  std::map<std::string, std::string> parts;
};

}  // namespace change

using StateChange =
    std::variant<change::CreateJob, change::SetIntent, change::GrantLease, change::EndLease, change::CommitProgress,
                 change::RetireChain, change::CreateVersion, change::DeleteVersion, change::SetAlias,
                 change::DeleteAlias, change::ExpireSegments, change::ReleaseExpired, change::MarkCorrupt,
                 change::PurgeJob, change::BeginUpload, change::EndUpload, change::PutDataset, change::DeleteDataset,
                 change::PutModel, change::DeleteModel, change::ShareContent, change::NameGarbage,
                 change::ForgetGarbage, change::QueueSweep, change::EndSweep, change::CreateEvaluation,
                 change::EndEvaluation, change::StopPoint, change::ScaleJob, change::KeepFindings, change::AddToken,
                 change::RevokeToken, change::UseToken>;

// The outcome of one change. Rows are as the change left them; caches copy them and decide nothing themselves.
struct ApplyResult {
  absl::Status status;
  bool replayed = false;         // a CommitProgress, CreateEvaluation, EndEvaluation or AddToken that was made before
  std::vector<ChainRow> chains;  // chains that changed
  std::optional<JobRow> job;     // if it changed
  std::optional<Version> version;
  std::optional<ResumePoint> resume_point;  // set by GrantLease
  // Set by GrantLease if the chain has draws, and no resume point with a proof.
  std::optional<SegmentRecord> newest_segment;
  std::optional<Dataset> dataset;           // set by PutDataset and ShareContent
  std::optional<StoredModel> model;         // set by PutModel and ShareContent
  std::vector<std::string> objects;         // set by ExpireSegments
  std::optional<EvaluationRow> evaluation;  // set by CreateEvaluation and EndEvaluation
  std::optional<AccessToken> token;         // set by AddToken and UseToken
  std::optional<change::PurgeJob> purge;    // set by PurgeJob: the next page
};

// The result of a change that was refused.
inline ApplyResult Refused(absl::Status why) {
  ApplyResult result;
  result.status = std::move(why);
  return result;
}

}  // namespace chainfleet
