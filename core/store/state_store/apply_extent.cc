#include "core/store/state_store/apply_extent.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/domain/no_such.h"
#include "core/domain/sweep_points.h"

namespace chainfleet {
namespace {

// The reason why the job cannot have `chains` chains; empty if it can.
std::string WhyNotScaled(const JobRow& job, int32_t chains) {
  const JobSpec& spec = job.plan->spec;
  if (spec.sweep.any()) return "has a sweep: submit another for more chains of each point";
  if (chains < spec.chains) return absl::StrCat("has ", spec.chains, " chains, which only become more");
  if (chains > limits::kMaxChainsPerJob) return absl::StrCat("may have ", limits::kMaxChainsPerJob, " chains at most");
  if (job.finished_at) return "has ended: submit its file again with more chains";
  if (job.intent > JobIntent::kPause) return absl::StrCat("was ", Participle(job.intent));
  return job.stopped.empty() ? "" : absl::StrCat("has enough draws: ", job.stopped.begin()->second);
}

}  // namespace

absl::Status AddChains(const std::string& job, int32_t first, int32_t end, std::optional<int32_t> only, StateRows* rows,
                       ApplyResult* result) {
  for (int32_t i = first; i < end; ++i) {
    ChainRow chain;
    chain.id = {job, i};
    if (only.value_or(i) != i) chain.state = ChainState::kCancelled;
    CHAINFLEET_RETURN_IF_ERROR(rows->PutChain(chain));
    result->chains.push_back(std::move(chain));
  }
  return absl::OkStatus();
}

absl::StatusOr<ApplyResult> ApplyPart(const change::StopPoint& c, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(auto job, rows->FindJob(c.job));
  if (!job) return Refused(NoSuch("job", c.job));
  if (!job->stopped.contains(c.point)) {
    if (job->finished_at || c.point < 0 || c.point >= NumPoints(job->plan->spec.sweep)) {
      return Refused(absl::FailedPreconditionError(
          absl::StrCat("job ", c.job, job->finished_at ? " has ended" : absl::StrCat(" has no point ", c.point))));
    }
    job->stopped[c.point] = c.why;
    CHAINFLEET_RETURN_IF_ERROR(rows->UpdateJob(*job));
  }
  ApplyResult result;
  result.job = std::move(job);
  return result;
}

absl::StatusOr<ApplyResult> ApplyPart(const change::ScaleJob& c, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(auto job, rows->FindJob(c.job));
  if (!job) return Refused(NoSuch("job", c.job));
  if (job->plan->spec.kind == JobKind::kSbc) {
    return Refused(WithReason(absl::FailedPreconditionError(
                                  absl::StrCat("job ", c.job, " calibrates a sampler (kind: sbc) with data for each ",
                                               "of its chains: submit its file again with more chains")),
                              "SBC_JOB"));
  }
  ApplyResult result;
  const int32_t before = job->plan->spec.chains;
  if (c.chains != before || job->plan->spec.sweep.any()) {
    if (const std::string why = WhyNotScaled(*job, c.chains); !why.empty()) {
      return Refused(absl::FailedPreconditionError(absl::StrCat("job ", c.job, " ", why)));
    }
    auto plan = std::make_shared<JobPlan>(*job->plan);
    plan->spec.chains = c.chains;
    job->plan = std::move(plan);
    if (job->asked_chains == 0) job->asked_chains = before;
    CHAINFLEET_RETURN_IF_ERROR(rows->ReplacePlan(*job));
    CHAINFLEET_RETURN_IF_ERROR(AddChains(c.job, before, c.chains, std::nullopt, rows, &result));
  }
  result.job = std::move(job);
  return result;
}

}  // namespace chainfleet
