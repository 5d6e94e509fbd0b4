#include "server/rpc/final_findings.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/wire/types_wire.h"
#include "server/rpc/job_render.h"

namespace chainfleet {
namespace {

// The names and contents of parts belong to the store's format: the summary is a v1.Job with diagnostics and chain
// statistics, and each other part is a v1.Traces. Parts hold up to millions of numbers, so they are binary messages.
constexpr char kSummary[] = "summary";
// One v1.Traces of a job that runs, with the values [n, Q] of all quantities; empty once the job has ended.
constexpr char kRunningTraces[] = "traces while running";
constexpr int32_t kRenewedAtOnce = 1000;  // names of parts
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

// The name under which JobCipher encrypts a part: no object of a store has such a name. JobCipher never mistakes a
// message in clear for an encrypted part, because no message of this schema begins with 'C', the start of a group.
std::string EncryptedName(const std::string& job, const std::string& part) {
  return absl::StrCat("findings/", job, "/", part);
}

bool LacksKey(const absl::Status& status) { return ReasonOf(status) == "NO_DRAW_KEY"; }
bool IsUnreadable(const absl::Status& status) { return absl::IsDataLoss(status) || LacksKey(status); }

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
  std::map<std::string, std::string> parts = {{kSummary, SummaryOf(job, *traces_)}};
  const std::vector<std::string> quantities = traces_->QuantitiesOf(job.id);
  for (const std::string& quantity : quantities) {
    const auto traced = traces_->TracesOf(job.id, quantity);
    if (traced.ok()) parts[TracesPart(quantity)] = RenderTraces(quantity, *traced, quantities).SerializeAsString();
  }
  for (auto& [part, body] : parts) {
    absl::StatusOr<std::string> encrypted = cipher_.Encrypt(EncryptedName(job.id, part), job.id, body);
    if (!encrypted.ok()) {
      TellLeftOut(job.id, encrypted.status());
      parts.clear();
      break;
    }
    body = *std::move(encrypted);
  }
  parts[kRunningTraces] = "";
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
  const absl::StatusOr<std::string> encrypted = cipher_.Encrypt(EncryptedName(job, kRunningTraces), job, body);
  if (!encrypted.ok()) return TellLeftOut(job, encrypted.status());
  // A refused change loses nothing: the next one has its values.
  writer->Write(change::KeepFindings{job, {{kRunningTraces, *encrypted}}}, [](const ApplyResult&) {});
}

void FinalFindings::DelayTraces(const std::string& job, absl::Duration now, size_t bytes) {
  MutexLock lock(&mutex_);
  traces_due_[job] = now + absl::Seconds(static_cast<double>(bytes) / limits::kTraceBytesPerSecond);
}

absl::StatusOr<std::string> FinalFindings::Find(const std::string& job, const std::string& part) const {
  CHAINFLEET_ASSIGN_OR_RETURN(std::string body, store_->FindFinding(job, part));
  return cipher_.Decrypt(EncryptedName(job, part), std::move(body));
}

void FinalFindings::TellLeftOut(const std::string& job, const absl::Status& error) const {
  {
    MutexLock lock(&mutex_);
    if (!left_out_.insert(job).second) return;
  }
  Log(LogLevel::kWarning, "diagnostics and traces of a job cannot be stored or read",
      {{"job", job}, {"error", error.message()}});
}

absl::StatusOr<int64_t> FinalFindings::RestoreTraces(const std::string& job, const std::vector<ChainState>& states,
                                                     absl::Duration now) {
  absl::StatusOr<int64_t> bytes = AddStoredTraces(job, states, now);
  if (!IsUnreadable(bytes.status())) return bytes;
  TellLeftOut(job, bytes.status());
  return 0;
}

absl::StatusOr<int64_t> FinalFindings::AddStoredTraces(const std::string& job, const std::vector<ChainState>& states,
                                                       absl::Duration now) {
  const absl::StatusOr<std::string> stored = Find(job, kRunningTraces);
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

absl::Status FinalFindings::Renew(StateWriter* writer) {
  FindingName last;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<FindingName> names, store_->ListFindings(last, kRenewedAtOnce));
    for (const FindingName& name : names) CHAINFLEET_RETURN_IF_ERROR(RenewPart(name, writer));
    if (std::ssize(names) < kRenewedAtOnce) return absl::OkStatus();
    last = names.back();
  }
}

absl::Status FinalFindings::RenewPart(const FindingName& name, StateWriter* writer) {
  const auto& [job, part] = name;
  const std::string object = EncryptedName(job, part);
  const absl::StatusOr<std::string> body = store_->FindFinding(job, part);
  if (absl::IsNotFound(body.status())) return absl::OkStatus();  // purged meanwhile
  CHAINFLEET_RETURN_IF_ERROR(body.status());
  const absl::StatusOr<std::string> content = cipher_.Decrypt(object, *body);
  if (!content.ok()) TellLeftOut(job, content.status());
  if (!content.ok() || body->empty()) return absl::OkStatus();
  if (IsEncrypted(*body)) {
    CHAINFLEET_ASSIGN_OR_RETURN(const EncryptedObject head, cipher_.Open(object, *body, std::ssize(*body)));
    CHAINFLEET_ASSIGN_OR_RETURN(const bool current, cipher_.IsCurrent(head, job));
    if (current) return absl::OkStatus();
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string encrypted, cipher_.Encrypt(object, job, *content));
  CHAINFLEET_ASSIGN_OR_RETURN(const auto results, writer->Commit({change::KeepFindings{job, {{part, encrypted}}}}));
  return absl::IsNotFound(results[0].status) ? absl::OkStatus() : results[0].status;  // the job is to be deleted
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
      IsFinal(job.state) ? Find(job.id, kSummary) : NoSuchFinding(job.id, kSummary);
  if (stored.ok() && !summary.ParseFromString(*stored)) return Damaged(job.id, kSummary);
  if (LacksKey(stored.status())) TellLeftOut(job.id, stored.status());
  if (!stored.ok() && !absl::IsNotFound(stored.status()) && !LacksKey(stored.status())) return stored.status();
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
    const absl::StatusOr<std::string> stored = Find(job.id, TracesPart(quantity));
    if (stored.ok() && !traces.ParseFromString(*stored)) return Damaged(job.id, TracesPart(quantity));
    if (stored.ok()) return traces;
    if (!absl::IsNotFound(stored.status())) return stored.status();
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<TracedChain> chains, traces_->TracesOf(job.id, quantity));
  return RenderTraces(quantity, chains, traces_->QuantitiesOf(job.id));
}

}  // namespace chainfleet
