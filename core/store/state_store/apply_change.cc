#include "core/store/state_store/apply_change.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/domain/no_such.h"
#include "core/domain/sweep_points.h"
#include "core/store/state_store/apply_evaluations.h"
#include "core/store/state_store/apply_extent.h"
#include "core/store/state_store/apply_objects.h"
#include "core/store/state_store/apply_tokens.h"
#include "core/store/state_store/apply_versions.h"

namespace chainfleet {
namespace {

absl::Status Fenced(const ChainId& chain, int64_t epoch, int64_t current) {
  return WithReason(absl::FailedPreconditionError(absl::StrCat("chain ", ToString(chain), ": lease epoch ", epoch,
                                                               " is not current (", current, "), drop the chain")),
                    "LEASE_FENCED");
}

absl::Status Conflict(const ChainId& chain, const std::string& what) {
  return WithReason(absl::AbortedError(absl::StrCat("chain ", ToString(chain), ": ", what, ", drop the chain")),
                    "PATH_CONFLICT");
}

absl::Status Ended(const std::string& job) {
  return WithReason(absl::FailedPreconditionError(absl::StrCat("job ", job, " has ended: it can only be deleted")),
                    "JOB_ENDED");
}

// The state of a chain without a lease: final if its job is to be finished.
ChainState Rested(JobIntent intent) {
  return intent == JobIntent::kFinish ? ChainState::kCancelled : ChainState::kPending;
}

bool IsReplay(const ProgressCommit& commit, const ChainRow& row, JobIntent intent,
              const std::optional<DigestHex>& recorded) {
  if (commit.segment) return recorded == commit.segment->digest;
  if (commit.resume_point.step != row.step || commit.resume_point.sha256 != row.resume_sha256) return false;
  if (!commit.ends_as) return true;
  return row.state == (*commit.ends_as == ChainState::kPending ? Rested(intent) : *commit.ends_as);
}

absl::Status CheckPath(const ProgressCommit& commit, const ChainRow& row) {
  const int64_t step = commit.resume_point.step;
  if (commit.segment) {
    const Segment& segment = *commit.segment;
    if (segment.first_index != row.num_draws) {
      return Conflict(row.id, absl::StrCat("draw ", segment.first_index, " is not the next, ", row.num_draws));
    }
    if (segment.parent_digest != row.last_digest) {
      return Conflict(row.id, absl::StrCat("the segment at draw ", segment.first_index, " has another parent"));
    }
    if (segment.steps.back() > step) return Conflict(row.id, "the segment runs ahead of its resume point");
  }
  const DigestHex& newest = commit.segment ? commit.segment->digest : row.last_digest;
  const std::optional<ResumeProof>& proof = commit.resume_point.proof;
  if (proof && !proof->last_digest.empty() && proof->last_digest != newest) {
    return Conflict(row.id, "the resume point is signed to follow other draws");
  }
  const bool ends_where_it_is =
      commit.ends_as && !commit.segment && step == row.step && commit.resume_point.sha256 == row.resume_sha256;
  if (step <= row.step && !ends_where_it_is) {
    return Conflict(row.id, absl::StrCat("step ", step, " is not above the committed step ", row.step));
  }
  return absl::OkStatus();
}

// Reads the place from which the chain goes on.
absl::Status ReadStart(const ChainId& chain, StateRows* rows, ApplyResult* result) {
  CHAINFLEET_ASSIGN_OR_RETURN(result->resume_point, rows->FindResumePoint(chain));
  if (result->resume_point && result->resume_point->proof) return absl::OkStatus();
  CHAINFLEET_ASSIGN_OR_RETURN(result->newest_segment, rows->FindNewestSegment(chain));
  return absl::OkStatus();
}

absl::StatusOr<ApplyResult> ApplyPart(const change::KeepFindings& c, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto intent, rows->FindIntent(c.job));
  if (!intent || *intent == JobIntent::kDelete) return Refused(NoSuch("job", c.job));
  for (const auto& [part, body] : c.parts) CHAINFLEET_RETURN_IF_ERROR(rows->PutFinding(c.job, part, body));
  return ApplyResult();
}

class Applier {
 public:
  Applier(absl::Time wall, StateRows* rows) : wall_(wall), rows_(rows) {}

  absl::StatusOr<ApplyResult> operator()(const change::CreateJob& c) {
    ApplyResult result;
    if (!c.request_id.empty()) {
      CHAINFLEET_ASSIGN_OR_RETURN(const auto older, rows_->FindJobOfRequest(c.tenant, c.request_id));
      if (older) {
        result.status = WithReason(
            absl::AlreadyExistsError(absl::StrCat("request ", c.request_id, " has already created job ", *older)),
            "REQUEST_ID_USED");
        CHAINFLEET_ASSIGN_OR_RETURN(result.job, rows_->FindJob(*older));
        return result;
      }
    }
    CHAINFLEET_ASSIGN_OR_RETURN(result, CheckNoAlias(c.tenant, *c.plan, rows_));
    if (!result.status.ok()) return result;
    if (c.plan->dataset) {
      CHAINFLEET_ASSIGN_OR_RETURN(const auto dataset, rows_->FindDataset(ContentKey(*c.plan->dataset)));
      if (!dataset || dataset->digest != c.plan->dataset->digest) {
        return Refused(WithReason(
            absl::NotFoundError(absl::StrCat("no dataset ", c.plan->dataset->name, ": put it again, then submit")),
            "DATASET_NOT_FOUND"));
      }
    }
    for (const StoredModel* file : FilesOf(*c.plan)) {
      CHAINFLEET_ASSIGN_OR_RETURN(const bool stored, rows_->HasModel(*file));
      if (!stored) {
        return Refused(
            WithReason(absl::NotFoundError(absl::StrCat("no model ", file->name, ": put it again, then submit")),
                       "MODEL_NOT_FOUND"));
      }
    }
    JobRow row;
    row.id = c.plan->job;
    row.tenant = c.tenant;
    row.request_id = c.request_id;
    row.plan = c.plan;
    row.created_at = wall_;
    CHAINFLEET_ASSIGN_OR_RETURN(const bool inserted, rows_->InsertJob(&row));
    if (!inserted) return Refused(absl::AbortedError(absl::StrCat("job id ", row.id, " is taken: submit again")));
    CHAINFLEET_RETURN_IF_ERROR(AddChains(row.id, 0, NumChains(c.plan->spec), c.only_chain, rows_, &result));
    result.job = std::move(row);
    return result;
  }

  absl::StatusOr<ApplyResult> operator()(const change::SetIntent& c) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto job, rows_->FindJob(c.job));
    if (!job) return Refused(NoSuch("job", c.job));
    if (job->intent == c.intent) {
      ApplyResult unchanged;
      unchanged.job = std::move(job);
      return unchanged;
    }
    if (job->finished_at && c.intent != JobIntent::kDelete) {
      return Refused(Ended(c.job));
    }
    if (absl::Status moved = CheckIntentMove(job->intent, c.intent); !moved.ok()) {
      return Refused(Annotate(moved, absl::StrCat("job ", c.job)));
    }
    if (c.intent == JobIntent::kDelete) {
      CHAINFLEET_ASSIGN_OR_RETURN(ApplyResult unnamed, CheckUnnamed(c.job, std::nullopt, rows_));
      if (!unnamed.status.ok()) return unnamed;
    }
    ApplyResult result;
    job->intent = c.intent;
    CHAINFLEET_RETURN_IF_ERROR(rows_->UpdateJob(*job));
    result.job = std::move(job);
    const bool cancels = c.intent == JobIntent::kCancel || c.intent == JobIntent::kDelete;
    if (!cancels && c.intent != JobIntent::kFinish) return result;
    CHAINFLEET_ASSIGN_OR_RETURN(auto chains, rows_->ListChains(c.job));
    for (ChainRow& row : chains) {
      if (IsFinal(row.state) || (!cancels && row.state != ChainState::kPending)) continue;
      row.state = ChainState::kCancelled;
      CHAINFLEET_RETURN_IF_ERROR(Store(row));
      result.chains.push_back(std::move(row));
    }
    CHAINFLEET_RETURN_IF_ERROR(FinishJobIfDone(&result));
    return result;
  }

  absl::StatusOr<ApplyResult> operator()(const change::GrantLease& c) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto row, rows_->FindChain(c.chain));
    CHAINFLEET_ASSIGN_OR_RETURN(const auto intent, rows_->FindIntent(c.chain.job));
    if (!row || !intent) return Refused(NoSuch("job", c.chain.job));
    const bool next = row->state == ChainState::kPending && c.lease_epoch == row->lease_epoch + 1;
    const bool again = !IsFinal(row->state) && HeldBy(*row, c.lease_epoch, c.worker, c.incarnation);
    if (*intent != JobIntent::kRun || !(next || again)) {
      return Refused(absl::FailedPreconditionError(
          absl::StrCat("chain ", ToString(c.chain), " cannot be leased: it is ", ToString(row->state), " at epoch ",
                       row->lease_epoch, ", its job's intent ", ToString(*intent))));
    }
    // The same process still has the chain, so the previous lease did not end with a crash.
    if (again && row->state == ChainState::kPending && !row->lease_committed && row->crashes > 0) --row->crashes;
    row->state = ChainState::kLeased;
    if (next) {
      row->lease_epoch = c.lease_epoch;
      row->worker = c.worker;
      row->incarnation = c.incarnation;
      row->lease_committed = false;
      if (c.lease_epoch > 1) CHAINFLEET_RETURN_IF_ERROR(rows_->QueueSweep(c.chain));  // for objects of older epochs
    }
    ApplyResult result;
    CHAINFLEET_RETURN_IF_ERROR(ReadStart(c.chain, rows_, &result));
    CHAINFLEET_RETURN_IF_ERROR(rows_->PutChain(*row));
    result.chains.push_back(*std::move(row));
    return result;
  }

  absl::StatusOr<ApplyResult> operator()(const change::EndLease& c) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto row, rows_->FindChain(c.chain));
    CHAINFLEET_ASSIGN_OR_RETURN(const auto intent, rows_->FindIntent(c.chain.job));
    if (!row || !intent) return Refused(NoSuch("job", c.chain.job));
    if (row->lease_epoch != c.lease_epoch || IsFinal(row->state)) {
      return Refused(Fenced(c.chain, c.lease_epoch, row->lease_epoch));
    }
    if (row->state == ChainState::kLeased) {
      if (!c.ordered && !row->lease_committed) CountAttempt(c.crash, &*row);
      row->reason = c.reason;
      const bool failed = c.hopeless || row->attempts >= limits::kMaxAttemptsWithoutProgress;
      row->state = failed ? ChainState::kFailed : Rested(*intent);
    }
    if (c.given_back) row->worker = row->incarnation = "";
    return PutChain(*std::move(row));
  }

  absl::StatusOr<ApplyResult> operator()(const change::CommitProgress& commit) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto row, rows_->FindChain(commit.chain));
    CHAINFLEET_ASSIGN_OR_RETURN(const auto intent, rows_->FindIntent(commit.chain.job));
    if (!row || !intent) return Refused(Fenced(commit.chain, commit.lease_epoch, 0));
    std::optional<DigestHex> recorded;
    if (commit.segment) {
      CHAINFLEET_ASSIGN_OR_RETURN(recorded, rows_->FindDigest(commit.chain, commit.segment->first_index));
    }
    if (IsReplay(commit, *row, *intent, recorded)) {
      ApplyResult result;
      result.replayed = true;
      result.chains.push_back(*std::move(row));
      return result;
    }
    if (!HeldBy(*row, commit.lease_epoch, commit.author.worker, commit.incarnation)) {
      return Refused(Fenced(commit.chain, commit.lease_epoch, row->lease_epoch));
    }
    if (IsFinal(row->state)) {
      return Refused(WithReason(absl::FailedPreconditionError(absl::StrCat("chain ", ToString(commit.chain), " is ",
                                                                           ToString(row->state), ", drop it")),
                                "CHAIN_FINAL"));
    }
    if (absl::Status path = CheckPath(commit, *row); !path.ok()) return Refused(std::move(path));
    CHAINFLEET_RETURN_IF_ERROR(WriteProgress(commit, *intent, &*row));
    return PutChain(*std::move(row));
  }

  absl::StatusOr<ApplyResult> operator()(const change::RetireChain& c) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto row, rows_->FindChain(c.chain));
    if (!row) return Refused(NoSuch("job", c.chain.job));
    if (row->state != ChainState::kPending) {
      return Refused(absl::FailedPreconditionError(
          absl::StrCat("chain ", ToString(c.chain), " cannot be retired: it is ", ToString(row->state))));
    }
    row->state = c.failed ? ChainState::kFailed : ChainState::kSucceeded;
    row->reason = c.reason;
    row->worker = row->incarnation = "";
    return PutChain(*std::move(row));
  }

  absl::StatusOr<ApplyResult> operator()(const change::MarkCorrupt& c) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, rows_->MarkCorrupt(c.job, c.object, c.corrupt));
    return Refused(found ? absl::OkStatus() : NoSuchSegment(c.job, c.object));
  }

  absl::StatusOr<ApplyResult> operator()(const change::PurgeJob& c) {
    CHAINFLEET_ASSIGN_OR_RETURN(const auto intent, rows_->FindIntent(c.job));
    if (!intent) return ApplyResult();
    if (*intent != JobIntent::kDelete) {
      return Refused(absl::FailedPreconditionError(absl::StrCat("job ", c.job, " is not to be deleted")));
    }
    ApplyResult result;
    CHAINFLEET_ASSIGN_OR_RETURN(const bool more, rows_->PurgeJob(c));
    if (more) {
      result.purge = c;
      return result;
    }
    // Queue sweeps only after the last page, so that they also find objects that a sweep between two pages has left.
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ChainRow> chains, rows_->ListChains(c.job));
    for (const ChainRow& row : chains) CHAINFLEET_RETURN_IF_ERROR(SweepIfGranted(row));
    CHAINFLEET_RETURN_IF_ERROR(rows_->DeleteChains(c.job));
    return result;
  }

  absl::StatusOr<ApplyResult> operator()(const change::QueueSweep& c) {
    CHAINFLEET_RETURN_IF_ERROR(rows_->QueueSweep(c.chain));
    return ApplyResult();
  }

  absl::StatusOr<ApplyResult> operator()(const change::EndSweep& c) {
    CHAINFLEET_RETURN_IF_ERROR(rows_->RemoveSweep(c.ticket));
    return ApplyResult();
  }

  // The changes of the other apply_*.h, and KeepFindings.
  template <typename Change>
  absl::StatusOr<ApplyResult> operator()(const Change& c) {
    if constexpr (requires { ApplyPart(c, rows_); }) {
      return ApplyPart(c, rows_);
    } else {
      return ApplyPart(c, wall_, rows_);
    }
  }

 private:
  static void CountAttempt(change::EndLease::Crash crash, ChainRow* row) {
    using Crash = change::EndLease::Crash;
    if (crash != Crash::kInCompany) {
      ++row->attempts;
    } else if (!row->suspect()) {
      // Another chain may have caused the crash, so keep one attempt: only a crash alone may fail the chain.
      row->attempts = std::min(row->attempts + 1, limits::kMaxAttemptsWithoutProgress - 1);
    }
    if (crash != Crash::kNone) ++row->crashes;
  }

  absl::Status WriteProgress(const ProgressCommit& commit, JobIntent intent, ChainRow* row) {
    if (commit.segment) {
      CHAINFLEET_RETURN_IF_ERROR(
          rows_->InsertSegment({commit.chain, *commit.segment, commit.lease_epoch, commit.author, wall_}));
      row->num_draws += commit.segment->num_draws();
      row->last_digest = commit.segment->digest;
    }
    if (commit.resume_point.step > row->step) {
      CHAINFLEET_RETURN_IF_ERROR(ReplaceResumePoint(commit));
      row->step = commit.resume_point.step;
      row->resume_sha256 = commit.resume_point.sha256;
      row->attempts = row->crashes = 0;
      row->lease_committed = true;
    }
    if (!commit.ends_as) return absl::OkStatus();
    row->state = *commit.ends_as;
    row->reason = commit.reason;
    if (row->state == ChainState::kPending) {
      row->state = Rested(intent);
      row->worker = row->incarnation = "";
    }
    return absl::OkStatus();
  }

  // The superseded object has no reader any more: the holder of the epoch wrote the new one.
  absl::Status ReplaceResumePoint(const ProgressCommit& commit) {
    CHAINFLEET_ASSIGN_OR_RETURN(const auto old, rows_->FindResumeObject(commit.chain));
    if (old && old != commit.resume_point.object) CHAINFLEET_RETURN_IF_ERROR(rows_->AddGarbage(old->name));
    return rows_->PutResumePoint(commit.chain, commit.resume_point);
  }

  // A chain without any grant has no objects.
  absl::Status SweepIfGranted(const ChainRow& row) {
    return row.lease_epoch > 0 ? rows_->QueueSweep(row.id) : absl::OkStatus();
  }

  absl::Status Store(const ChainRow& row) {
    if (IsFinal(row.state)) CHAINFLEET_RETURN_IF_ERROR(SweepIfGranted(row));
    return rows_->PutChain(row);
  }

  absl::StatusOr<ApplyResult> PutChain(ChainRow row) {
    CHAINFLEET_RETURN_IF_ERROR(Store(row));
    ApplyResult result;
    result.chains.push_back(std::move(row));
    CHAINFLEET_RETURN_IF_ERROR(FinishJobIfDone(&result));
    return result;
  }

  // Called after `result->chains` changed their states.
  absl::Status FinishJobIfDone(ApplyResult* result) {
    if (result->chains.empty() || !IsFinal(result->chains.front().state)) return absl::OkStatus();
    const std::string& id = result->chains.front().id.job;
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t unfinished, rows_->CountUnfinishedChains(id));
    if (unfinished > 0) return absl::OkStatus();
    CHAINFLEET_ASSIGN_OR_RETURN(result->job, rows_->FindJob(id));
    result->job->finished_at = wall_;
    CHAINFLEET_RETURN_IF_ERROR(rows_->UpdateJob(*result->job));
    CHAINFLEET_ASSIGN_OR_RETURN(result->version, MakeVersion(id, wall_, rows_));
    return absl::OkStatus();
  }

  const absl::Time wall_;
  StateRows* const rows_;
};

}  // namespace

absl::StatusOr<ApplyResult> ApplyChange(const StateChange& change, absl::Time wall, StateRows* rows) {
  return std::visit(Applier(wall, rows), change);
}

absl::Status CheckGeneration(int64_t mine, int64_t stored) {
  if (mine == stored) return absl::OkStatus();
  return WithReason(absl::UnavailableError(absl::StrCat("the store belongs to coordinator generation ", stored,
                                                        " now, this one is ", mine)),
                    "NOT_LEADER");
}

}  // namespace chainfleet
