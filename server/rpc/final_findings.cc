#include "server/rpc/final_findings.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/wire/types_wire.h"
#include "server/rpc/job_render.h"

namespace chainfleet {
namespace {

// The names and contents of parts belong to the store's format: the summary is a v1.Job with diagnostics and chain
// statistics, and each other part is a v1.Traces. Parts hold up to millions of numbers, so they are binary messages.
constexpr char kSummary[] = "summary";
// One v1.Traces of a job that runs, with the values [n, Q] of all quantities; empty once the job has ended.
constexpr char kRunningTraces[] = "traces while running";
std::string TracesPart(const std::string& quantity) { return "traces of " + quantity; }

std::string SummaryOf(const JobView& job, const TraceTable& traces) {
  v1::Job summary;
  RenderDiagnostics(traces.Of(job.id), &summary);
  for (const ChainView& chain : job.chains) *summary.add_chains()->mutable_stats() = ToProto(chain.stats);
  return summary.SerializeAsString();
}

absl::Status Damaged(const std::string& job, const std::string& part) {
  return absl::DataLossError(absl::StrCat("job ", job, ": the ", part, " in the state store cannot be read"));
}

}  // namespace

void FinalFindings::OnJobEnd(const JobView& job, KeepFindings keep) {
  {
    MutexLock lock(&mutex_);
    waiting_[job.id];
  }
  executor_->Schedule([this, job, keep = std::move(keep)] {
    traces_->WhenSettled(job.id, [this, job, keep] { executor_->Schedule([this, job, keep] { Keep(job, keep); }); });
  });
}

void FinalFindings::Keep(const JobView& job, const KeepFindings& keep) {
  std::map<std::string, std::string> parts = {{kSummary, SummaryOf(job, *traces_)}, {kRunningTraces, ""}};
  const std::vector<std::string> quantities = traces_->QuantitiesOf(job.id);
  for (const std::string& quantity : quantities) {
    const auto traced = traces_->TracesOf(job.id, quantity);
    if (traced.ok()) parts[TracesPart(quantity)] = RenderTraces(quantity, *traced, quantities).SerializeAsString();
  }
  keep(std::move(parts), [this, id = job.id] { TellKept(id); });
}

void FinalFindings::KeepTraces(const std::string& job, absl::Duration now, StateWriter* writer) {
  {
    MutexLock lock(&mutex_);
    std::erase_if(traces_due_, [now](const auto& due) { return due.second <= now; });
    if (traces_due_.contains(job)) return;
  }
  const std::string body = RenderTraces("", traces_->EveryTrace(job), traces_->QuantitiesOf(job)).SerializeAsString();
  DelayTraces(job, now, body.size());
  if (static_cast<int64_t>(body.size()) > kMostRunningTraceBytes) return;
  // A refused change loses nothing: the next one has its values.
  writer->Write(change::KeepFindings{job, {{kRunningTraces, body}}}, [](const ApplyResult&) {});
}

void FinalFindings::DelayTraces(const std::string& job, absl::Duration now, size_t bytes) {
  MutexLock lock(&mutex_);
  traces_due_[job] = now + absl::Seconds(static_cast<double>(bytes) / limits::kTraceBytesPerSecond);
}

absl::StatusOr<int64_t> FinalFindings::RestoreTraces(const std::string& job, const std::vector<ChainState>& states,
                                                     absl::Duration now) {
  const absl::StatusOr<std::string> stored = store_->FindFinding(job, kRunningTraces);
  if (absl::IsNotFound(stored.status())) return 0;
  if (!stored.ok()) return stored.status();
  v1::Traces traces;
  if (!traces.ParseFromString(*stored)) return Damaged(job, kRunningTraces);
  DelayTraces(job, now, stored->size());  // the first of these chains must not replace all
  for (const v1::Traces::Chain& chain : traces.chains()) {
    if (chain.chain() < 0 || static_cast<size_t>(chain.chain()) >= states.size()) return Damaged(job, kRunningTraces);
    const ChainState state = states[chain.chain()];
    if (state == ChainState::kDiverged || state == ChainState::kFailed) continue;
    traces_->Add({job, chain.chain()},
                 {.point = chain.point(),
                  .quantities = {traces.quantities().begin(), traces.quantities().end()},
                  .steps = {chain.steps().begin(), chain.steps().end()},
                  .values = {chain.values().begin(), chain.values().end()}},
                 std::nullopt, now);
  }
  return static_cast<int64_t>(stored->size());
}

void FinalFindings::TellKept(const std::string& job) {
  std::vector<std::function<void()>> told;
  {
    MutexLock lock(&mutex_);
    told = std::move(waiting_.extract(job).mapped());
  }
  for (const auto& kept : told) executor_->Schedule(kept);
}

void FinalFindings::WhenKept(const std::string& job, std::function<void()> kept) {
  {
    MutexLock lock(&mutex_);
    if (const auto found = waiting_.find(job); found != waiting_.end()) return found->second.push_back(std::move(kept));
  }
  executor_->Schedule(std::move(kept));
}

absl::StatusOr<v1::Job> FinalFindings::Render(const JobView& job) const {
  v1::Job summary;
  const absl::StatusOr<std::string> stored =
      IsFinal(job.state) ? store_->FindFinding(job.id, kSummary) : NoSuchFinding(job.id, kSummary);
  if (stored.ok() && !summary.ParseFromString(*stored)) return Damaged(job.id, kSummary);
  if (!stored.ok() && !absl::IsNotFound(stored.status())) return stored.status();
  if (!stored.ok()) {
    v1::Job rendered = RenderJob(job);
    RenderDiagnostics(traces_->Of(job.id), &rendered);
    return rendered;
  }
  JobView ended = job;
  for (size_t i = 0; i < ended.chains.size() && i < static_cast<size_t>(summary.chains_size()); ++i) {
    ended.chains[i].stats = FromProto(summary.chains(static_cast<int>(i)).stats());
  }
  v1::Job rendered = RenderJob(ended);
  *rendered.mutable_diagnostics() = std::move(*summary.mutable_diagnostics());
  return rendered;
}

absl::StatusOr<v1::Traces> FinalFindings::TracesOf(const JobView& job, const std::string& quantity) const {
  if (IsFinal(job.state)) {
    v1::Traces traces;
    const absl::StatusOr<std::string> stored = store_->FindFinding(job.id, TracesPart(quantity));
    if (stored.ok() && !traces.ParseFromString(*stored)) return Damaged(job.id, TracesPart(quantity));
    if (stored.ok()) return traces;
    if (!absl::IsNotFound(stored.status())) return stored.status();
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<TracedChain> chains, traces_->TracesOf(job.id, quantity));
  return RenderTraces(quantity, chains, traces_->QuantitiesOf(job.id));
}

}  // namespace chainfleet
