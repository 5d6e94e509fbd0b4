#include "worker/runtime/chain_batch_runner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/domain/chain_warnings.h"
#include "core/domain/sweep_points.h"
#include "worker/numerics/arena/device_memory.h"
#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {
namespace {

int64_t BytesOf(const Draw& draw) {
  int64_t bytes = 0;
  for (const auto& theta : draw.theta) bytes += static_cast<int64_t>(theta.size() * sizeof(float));
  return bytes;
}

// The reason to release a chain: kRefused if another worker may be able to run it, kFailed if it fails everywhere,
// kInvalid if the job's fields are wrong, so that a retry cannot succeed, kStore if its resume point is not its own.
ReleasedChain::Why WhyOf(const absl::Status& status) {
  if (!FieldViolationsOf(status).empty()) return ReleasedChain::Why::kInvalid;
  if (absl::IsDataLoss(status)) return ReleasedChain::Why::kStore;
  return absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status) ? ReleasedChain::Why::kRefused
                                                                             : ReleasedChain::Why::kFailed;
}

// Keeps the values that diagnostics read: a job may trace every step, and a commit must not grow with it.
void KeepNewest(ChainTrace* trace) {
  const int64_t surplus = static_cast<int64_t>(trace->steps.size()) - kTraceWindow;
  if (surplus <= 0) return;
  trace->steps.erase(trace->steps.begin(), trace->steps.begin() + surplus);
  const int64_t values = surplus * static_cast<int64_t>(trace->quantities.size());
  trace->values.erase(trace->values.begin(), trace->values.begin() + values);
}

// "3:7 4:1": chain and lease epoch of each counted row. A batch has one log line for all of them.
std::string LeasesOf(const auto& rows, auto counts) {
  std::string text;
  for (const auto& [index, row] : rows) {
    if (counts(row)) absl::StrAppend(&text, text.empty() ? "" : " ", index, ":", row.lease.epoch);
  }
  return text;
}

}  // namespace

ChainBatchRunner::ChainBatchRunner(std::shared_ptr<const JobPlan> plan, JobInputs inputs, ChainBatchFactory factory,
                                   HeldChains* held, DrawUploader* uploader, RuntimeObserver* observer,
                                   const Clock* clock)
    : plan_(std::move(plan)),
      inputs_(std::move(inputs)),
      factory_(std::move(factory)),
      held_(held),
      uploader_(uploader),
      observer_(observer),
      clock_(clock),
      max_rows_(std::numeric_limits<size_t>::max()) {}

absl::StatusOr<ChainBatchRunner::Part*> ChainBatchRunner::PartWithRoom() {
  for (const auto& part : parts_) {
    if (part->batch != nullptr && part->rows.size() < max_rows_) return part.get();
  }
  auto part = std::make_unique<Part>();
  CHAINFLEET_ASSIGN_OR_RETURN(part->batch, factory_(plan_, inputs_));
  parts_.push_back(std::move(part));
  return parts_.back().get();
}

bool ChainBatchRunner::Guarded(Part* part, const std::function<bool()>& work) {
  const absl::StatusOr<bool> done = CatchTorch("a batch of chains", [&]() -> absl::StatusOr<bool> { return work(); });
  if (done.ok()) return *done;
  FailAll(part, done.status());
  return true;
}

absl::Status ChainBatchRunner::AddToBatch(Part* part, const LoadedChain& loaded) {
  const Grant& grant = loaded.chain.grant;
  const int32_t index = grant.chain.index;
  CHAINFLEET_RETURN_IF_ERROR(part->batch->AddChain(index, loaded.resume_point, loaded.weights.get()));
  const int64_t step = part->batch->StepsDone(index);
  if (step == grant.progress.step) return absl::OkStatus();
  Guarded(part, [&] {
    part->batch->RemoveChain(index);
    return true;
  });
  return absl::DataLossError(absl::StrCat("the resume point of ", ToString(grant.chain), " holds the state after step ",
                                          step, ", the chain is at step ", grant.progress.step,
                                          ": restore the state store from a backup, or submit the job again"));
}

void ChainBatchRunner::Join(const LoadedChain& loaded) {
  const Grant& grant = loaded.chain.grant;
  const int32_t index = grant.chain.index;
  for (const auto& part : parts_) {
    const auto old = part->rows.find(index);
    if (old == part->rows.end()) continue;
    // The chain was granted again while the old epoch's row waited for its step boundary: that row is fenced.
    Guarded(part.get(), [&] {
      LeaveBatch(part.get(), &old->second);
      part->rows.erase(old);
      return true;
    });
  }
  std::erase_if(parts_, [](const auto& p) { return p->rows.empty(); });
  const absl::StatusOr<Part*> part = PartWithRoom();
  absl::Status status = part.status();
  if (status.ok()) status = AddToBatch(*part, loaded);
  if (!status.ok()) {
    if (ReasonOf(status) == kDeviceLost) return held_->LoseDevice(std::string(status.message()));
    held_->Release(loaded.chain.lease(), WhyOf(status), std::string(status.message()));
    std::erase_if(parts_, [](const auto& p) { return p->rows.empty(); });
    return;
  }
  uploader_->Open(loaded.chain, (*part)->batch->parameters());
  Row row;
  row.lease = loaded.chain.lease();
  row.step = row.saved_step = grant.progress.step;
  row.saved_at = clock_->Monotonic();
  if (loaded.weights != nullptr && HoldsDraws(grant)) row.weights = loaded.weights;
  (*part)->rows.emplace(index, std::move(row));
}

bool ChainBatchRunner::Settle(absl::Duration usual_step) {
  bool changed = false;
  for (const auto& part : parts_) {
    changed |= Guarded(part.get(), [&] { return SettlePart(part.get(), usual_step); });
  }
  std::erase_if(parts_, [](const auto& part) { return part->rows.empty(); });
  return changed;
}

bool ChainBatchRunner::SettlePart(Part* part, absl::Duration usual_step) {
  std::vector<LeaseRef> leases;
  for (const auto& [index, row] : part->rows) leases.push_back(row.lease);
  const std::vector<Standing> standings = held_->Visit(leases, usual_step);
  bool changed = false;
  size_t i = 0;
  for (auto it = part->rows.begin(); it != part->rows.end(); ++i) {
    Row& row = it->second;
    row.standing = standings[i];
    if (!row.standing.held) LeaveBatch(part, &row);
    changed |= !row.standing.held || SettleRow(part, &row);
    const bool gone = !row.standing.held || (row.leaving && !row.unsent);
    it = gone ? part->rows.erase(it) : std::next(it);
  }
  return ParkOrReturn(part) || changed;
}

bool ChainBatchRunner::SettleRow(Part* part, Row* row) {
  if (row->unsent) return Send(row);
  if (row->leaving) return false;
  if (row->standing.hand_back) {
    Close(part, row, ChainState::kPending, "handed back");
    return true;
  }
  if (row->draft.empty() || clock_->Monotonic() - row->draft_since < limits::kSegmentAge) return false;
  Close(part, row, std::nullopt, "");
  return true;
}

bool ChainBatchRunner::ParkOrReturn(Part* part) {
  bool any_may_step = false, changed = false;
  for (const auto& [index, row] : part->rows) any_may_step |= !row.leaving && row.standing.may_step;
  if (!any_may_step) return false;
  for (auto& [index, row] : part->rows) {
    if (row.leaving) continue;
    if (row.in_batch && !row.standing.may_step) {
      changed = true;
      if (!part->batch->IsFinite(index)) {
        Diverge(part, &row);
        continue;
      }
      row.parked = part->batch->SaveResumePoint(index);
      part->batch->RemoveChain(index);
      row.in_batch = false;
    } else if (row.parked && row.standing.may_step) {
      const absl::Status status = part->batch->AddChain(index, row.parked, row.weights.get());
      if (!status.ok()) {
        Fail(part, &row, std::string(status.message()));
        continue;
      }
      row.parked.reset();
      row.in_batch = true;
      changed = true;
    }
  }
  return changed;
}

bool ChainBatchRunner::MayStep(const Part& part) const {
  bool any = false;
  for (const auto& [index, row] : part.rows) {
    if (row.unsent) return false;
    if (row.in_batch && !row.standing.may_step) return false;
    any |= row.in_batch;
  }
  return any;
}

bool ChainBatchRunner::StepNext() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part* part = parts_[(next_part_ + i) % parts_.size()].get();
    if (!MayStep(*part)) continue;
    next_part_ = (next_part_ + i + 1) % parts_.size();
    return Guarded(part, [&] {
      Step(part);
      return true;
    });
  }
  return false;
}

absl::Duration ChainBatchRunner::median_step() const {
  absl::Duration longest;
  for (const auto& part : parts_) longest = std::max(longest, part->timer.Median());
  return longest;
}

void ChainBatchRunner::Step(Part* part) {
  const absl::Duration began = clock_->Monotonic();
  const absl::StatusOr<std::vector<RowReport>> reports = part->batch->Step();
  const absl::Duration ended = clock_->Monotonic();
  if (absl::IsResourceExhausted(reports.status())) return Split(part, reports.status());
  if (!reports.ok()) return FailAll(part, reports.status());
  part->timer.Add(began, ended);
  StepFigures step{.rows = static_cast<int>(reports->size()), .took = ended - began};
  for (const RowReport& report : *reports) {
    step.gradients += report.gradients;
    step.accepted += report.accepted == true;
    step.rejected += report.accepted == false;
  }
  observer_->OnStep(step);
  resume_point_interval_ = ResumePointInterval();
  for (const RowReport& report : *reports) TakeReport(part, report);
  std::erase_if(part->rows, [](const auto& entry) { return entry.second.leaving && !entry.second.unsent; });
}

void ChainBatchRunner::TakeReport(Part* part, const RowReport& report) {
  const auto it = part->rows.find(report.chain);
  CHAINFLEET_CHECK(it != part->rows.end()) << "step of chain " << report.chain << ", which is not in the batch";
  Row& row = it->second;
  row.step = report.step;
  row.stats = report.stats;
  row.stats.steps_per_second = part->timer.StepsPerSecond();
  held_->Stepped(row.lease, row.step, row.stats);
  LogWarnings(report, row.lease);
  if (!report.finite) return Diverge(part, &row);
  if (!report.trace.empty()) AddTrace(*part, report, &row);
  if (report.draw_due) {
    AddDraw(part->batch->TakeDraw(report.chain), &row);
  }
  if (report.done) return Close(part, &row, ChainState::kSucceeded, "");
  if (SegmentIsFull(row) || ResumePointIsDue(row)) Close(part, &row, std::nullopt, "");
}

void ChainBatchRunner::LogWarnings(const RowReport& report, const LeaseRef& lease) const {
  const std::optional<RunReport>& measured = report.stats.report;
  if (!measured || measured->step != report.step - 1) return;
  const int64_t num_examples = plan_->dataset ? plan_->dataset->num_rows : 1;
  for (const std::string& warning : WarningsOf(report.stats, plan_->spec, num_examples)) {
    Log(LogLevel::kWarning, warning,
        {{"job", plan_->job}, {"chain", report.chain}, {"lease_epoch", lease.epoch}, {"step", measured->step}});
  }
}

void ChainBatchRunner::AddTrace(const Part& part, const RowReport& report, Row* row) const {
  ChainTrace& trace = row->trace;
  trace.point = PointOf(plan_->spec, report.chain);
  trace.quantities = part.batch->trace_quantities();
  trace.steps.push_back(report.step);
  trace.values.insert(trace.values.end(), report.trace.begin(), report.trace.end());
  if (trace.steps.size() >= 2 * kTraceWindow) KeepNewest(&trace);
}

void ChainBatchRunner::AddDraw(Draw draw, Row* row) {
  if (row->draft.empty()) row->draft_since = clock_->Monotonic();
  row->draft.push_back(std::move(draw));
}

bool ChainBatchRunner::SegmentIsFull(const Row& row) const {
  if (row.draft.empty()) return false;
  const auto draws = static_cast<int64_t>(row.draft.size());
  const int64_t limit = plan_->spec.collect.segment_draws;
  // The end of the chain may add the draw that it still holds.
  return (limit > 0 && draws >= limit) || draws + 1 >= limits::kMaxSegmentDraws ||
         (draws + 1) * BytesOf(row.draft.front()) > limits::kSegmentBytes;
}

bool ChainBatchRunner::ResumePointIsDue(const Row& row) const {
  const int64_t every = plan_->spec.resume_point_every_steps;
  if (every > 0) return row.step - row.saved_step >= every;
  return clock_->Monotonic() - row.saved_at >= (row.saving ? resume_point_interval_ : limits::kResumePointInterval);
}

absl::Duration ChainBatchRunner::ResumePointInterval() const {
  absl::Duration saving;
  for (const auto& part : parts_) {
    for (const auto& [index, row] : part->rows) saving += row.saving.value_or(absl::ZeroDuration());
  }
  return std::clamp(limits::kResumePointFactor * saving, limits::kResumePointInterval, limits::kMaxResumePointInterval);
}

void ChainBatchRunner::Diverge(Part* part, Row* row) {
  Log(LogLevel::kWarning, "chain diverged",
      {{"job", plan_->job}, {"chain", row->lease.chain.index}, {"lease_epoch", row->lease.epoch}, {"step", row->step}});
  Close(part, row, ChainState::kDiverged, "energy or theta is not finite at step " + std::to_string(row->step));
}

void ChainBatchRunner::Close(Part* part, Row* row, std::optional<ChainState> ends_as, const std::string& reason) {
  if (row->step == row->saved_step && row->draft.empty()) {
    // Nothing is new since the last upload, and a commit must advance the step: release the lease after that upload.
    CHAINFLEET_CHECK(ends_as == ChainState::kPending) << "an end without a step, chain " << ToString(row->lease.chain);
    held_->MarkEnding(row->lease);
    LeaveBatch(part, row);
    row->leaving = true;
    return uploader_->ReleaseAfter(row->lease, ReleasedChain::Why::kStopped, reason);
  }
  // A GPU's report of a step may come after the commit of that step.
  const bool is_known = ends_as == ChainState::kDiverged || !row->in_batch;
  if (!is_known && !part->batch->IsFinite(row->lease.chain.index)) return Diverge(part, row);
  if (ends_as && row->in_batch) {
    if (auto held = part->batch->GiveUpHeld(row->lease.chain.index)) AddDraw(*std::move(held), row);
  }
  ProgressUpload upload;
  ProgressCommit& commit = upload.commit;
  commit.resume_point.step = row->step;
  row->saved_at = clock_->Monotonic();
  commit.resume_point.inline_bytes = row->parked ? *row->parked : part->batch->SaveResumePoint(row->lease.chain.index);
  upload.draws = std::exchange(row->draft, {});
  commit.stats = row->stats;
  commit.trace = std::exchange(row->trace, {});
  KeepNewest(&commit.trace);
  commit.ends_as = ends_as;
  commit.reason = reason;
  row->saved_step = row->step;
  row->unsent = std::move(upload);
  if (ends_as) {
    held_->MarkEnding(row->lease);
    LeaveBatch(part, row);
    row->leaving = true;
  }
  Send(row);
}

bool ChainBatchRunner::Send(Row* row) {
  if (!uploader_->Offer(row->lease, &*row->unsent)) return false;
  const absl::Duration now = clock_->Monotonic();
  row->saving = now - std::max(row->saved_at, saving_until_);
  saving_until_ = now;
  row->unsent.reset();
  return true;
}

void ChainBatchRunner::LeaveBatch(Part* part, Row* row) {
  if (row->in_batch) part->batch->RemoveChain(row->lease.chain.index);
  row->in_batch = false;
  row->parked.reset();
}

void ChainBatchRunner::Fail(Part* part, Row* row, const std::string& reason, ReleasedChain::Why why) {
  LeaveBatch(part, row);
  row->leaving = true;
  held_->MarkEnding(row->lease);
  uploader_->ReleaseAfter(row->lease, why, reason);
}

void ChainBatchRunner::FailAll(Part* part, const absl::Status& status) {
  const std::string leases = LeasesOf(part->rows, [](const Row& row) { return !row.leaving; });
  Log(LogLevel::kError, "batch failed: its chains are handed back",
      {{"job", plan_->job}, {"chains", leases}, {"error", status.ToString()}});
  part->batch.reset();
  if (ReasonOf(status) == kDeviceLost) {
    held_->LoseDevice(std::string(status.message()));  // also hands back the chains that are not ending
    std::erase_if(part->rows, [](const auto& entry) { return !entry.second.leaving; });
  }
  // LibTorch refused values, such as an index that the network does not know: they fail on every worker.
  const auto why = absl::IsInvalidArgument(status) ? ReleasedChain::Why::kInvalid : ReleasedChain::Why::kFailed;
  for (auto& [index, row] : part->rows) {
    row.in_batch = false;
    if (!row.leaving) Fail(part, &row, std::string(status.message()), why);
  }
  std::erase_if(part->rows, [](const auto& entry) { return !entry.second.unsent; });
}

void ChainBatchRunner::Split(Part* part, const absl::Status& why) {
  std::vector<int32_t> inside;
  for (const auto& [index, row] : part->rows) {
    if (row.in_batch) inside.push_back(index);
  }
  const std::string reason(why.message());
  if (inside.size() <= 1) {
    return FailAll(part, absl::ResourceExhaustedError("out of memory with a single chain: " + reason));
  }
  const size_t half = inside.size() / 2;
  max_rows_ = inside.size() - half;
  const std::string leases = LeasesOf(part->rows, [](const Row& row) { return row.in_batch; });
  Log(LogLevel::kWarning, "out of memory: the batch is split",
      {{"job", plan_->job}, {"chains", leases}, {"error", reason}});
  absl::StatusOr<std::unique_ptr<ChainBatch>> batch = factory_(plan_, inputs_);
  if (ReasonOf(batch.status()) == kDeviceLost) return FailAll(part, batch.status());
  // Register the part before it has rows, so that they are not lost if moving them fails.
  Part* const other = parts_.emplace_back(std::make_unique<Part>()).get();
  if (batch.ok()) other->batch = *std::move(batch);
  // Remove all chains before the first joins the other batch, because it needs the memory that they free.
  for (size_t i = inside.size() - half; i < inside.size(); ++i) {
    if (!part->batch->IsFinite(inside[i])) continue;  // the next step reports it
    const auto it = part->rows.find(inside[i]);
    it->second.parked = part->batch->SaveResumePoint(inside[i]);
    part->batch->RemoveChain(inside[i]);
    it->second.in_batch = false;
    if (batch.ok()) {
      other->rows.insert(part->rows.extract(it));
    } else {
      Fail(part, &it->second, "no memory for a second batch: " + std::string(batch.status().message()));
    }
  }
  ReleaseCachedMemory();
  std::erase_if(part->rows, [](const auto& entry) { return entry.second.leaving && !entry.second.unsent; });
}

}  // namespace chainfleet
