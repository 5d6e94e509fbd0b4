#include "server/rpc/dispatcher_draw_catalog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/domain/sweep_points.h"
#include "server/predict/draw_selection.h"

namespace chainfleet {
namespace {

std::shared_ptr<const PredictPlan> PlanOf(const JobView& job) {
  auto plan = std::make_shared<PredictPlan>();
  plan->job = job.id;
  plan->model = job.plan->spec.model;
  plan->normalisation = job.plan->normalisation;
  if (job.plan->module) plan->module = job.plan->module->object;
  if (job.plan->dataset) {
    plan->input_shape = job.plan->dataset->input_shape;
    plan->num_classes = job.plan->dataset->num_classes;
  }
  return plan;
}

// The readable draws of one chain among its first `in_version`.
ChainDraws ReadableDraws(const ChainId& chain, const std::vector<SegmentRecord>& records, int64_t in_version) {
  ChainDraws draws{.chain = chain};
  for (const SegmentRecord& record : records) {
    const int64_t beyond = record.segment.first_index + record.segment.num_draws() - in_version;
    if (beyond >= record.segment.num_draws()) break;
    if (record.corrupt || record.deleted) continue;
    draws.segments.push_back(record.segment);
    draws.num_draws += record.segment.num_draws() - std::max<int64_t>(beyond, 0);
  }
  return draws;
}

absl::StatusOr<std::vector<SegmentRecord>> SegmentsOfChain(StateStore* store, const ChainId& chain) {
  StateStore::SegmentQuery query{.job = chain.job, .chain = chain.index};
  std::vector<SegmentRecord> records;
  while (true) {
    CHAINFLEET_ASSIGN_OR_RETURN(std::vector<SegmentRecord> page, store->ListSegments(query));
    const bool last = static_cast<int32_t>(page.size()) < query.limit;
    if (!page.empty()) {
      query.after_chain = chain.index;
      query.after_first_index = page.back().segment.first_index;
    }
    records.insert(records.end(), std::make_move_iterator(page.begin()), std::make_move_iterator(page.end()));
    if (last) return records;
  }
}

// INVALID_ARGUMENT for a chain that the point, or the job without a sweep, has not.
absl::Status CheckChains(const JobView& job, int32_t point, const std::vector<int32_t>& chains) {
  const JobSpec& spec = job.plan->spec;
  for (const int32_t chain : chains) {
    if (chain >= 0 && chain < static_cast<int64_t>(job.chains.size()) && PointOf(spec, chain) == point) continue;
    std::vector<int32_t> there;
    for (const ChainView& view : job.chains) {
      if (PointOf(spec, view.id.index) == point) there.push_back(view.id.index);
    }
    const std::string name = PointName(spec.sweep, point);
    return absl::InvalidArgumentError(absl::StrCat("job ", job.id, name.empty() ? "" : " at " + name, " has no chain ",
                                                   chain, ": its chains are ", there.front(), " to ", there.back()));
  }
  return absl::OkStatus();
}

// Of `point` alone.
absl::StatusOr<PinnedDraws> PinnedBy(StateStore* store, const JobView& job, int32_t point, const Snapshot& snapshot,
                                     const DrawQuery& query) {
  const JobSpec& spec = job.plan->spec;
  PinnedDraws pinned{
      .plan = PlanOf(job), .version = snapshot.number, .point = PointName(spec.sweep, point), .kinds = KindsOf(spec)};
  for (const ChainView& chain : job.chains) {
    if (PointOf(spec, chain.id.index) != point) continue;
    const auto index = static_cast<size_t>(chain.id.index);
    const int64_t in_version = index < snapshot.draws_of_chain.size() ? snapshot.draws_of_chain[index] : 0;
    const bool failed = chain.state == ChainState::kFailed || chain.state == ChainState::kDiverged;
    if (in_version == 0 || (failed && !query.include_failed)) continue;
    pinned.draws_in_version += in_version;
    if (!query.chains.empty() && std::ranges::count(query.chains, chain.id.index) == 0) continue;
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<SegmentRecord> records, SegmentsOfChain(store, chain.id));
    pinned.chains.push_back(ReadableDraws(chain.id, records, in_version));
  }
  SelectDraws(query, &pinned.chains);
  if (!pinned.chains.empty()) return pinned;
  return WithReason(absl::FailedPreconditionError(absl::StrCat("version ", snapshot.number, " of job ", job.id,
                                                               pinned.point.empty() ? "" : ", at " + pinned.point + ",",
                                                               " has no readable draw of a chain that did not fail")),
                    "NO_DRAWS");
}

// CANCEL and DELETE leave serving (protocol 6); the draws of a cancelled job can still be exported.
absl::StatusOr<JobView> ServedJob(Dispatcher* dispatcher, const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(JobView job, dispatcher->GetJob(name));
  if (job.intent < JobIntent::kCancel) return job;
  const char* hint = job.intent == JobIntent::kDelete ? "its draws are being deleted"
                                                      : "its draws can be exported until it is deleted";
  return WithReason(absl::FailedPreconditionError(absl::StrCat("job ", job.id, " is not served: its intent is ",
                                                               ToString(job.intent), "; ", hint)),
                    "NOT_SERVED");
}

}  // namespace

void DispatcherDrawCatalog::Pin(const DrawQuery& query, std::function<void(absl::StatusOr<PinnedDraws>)> done) {
  const absl::StatusOr<JobView> job = ServedJob(parts_.dispatcher, query.job);
  absl::Status status = job.status();
  int32_t point = 0;
  if (job.ok()) {
    const absl::StatusOr<int32_t> found = FindPoint(job->plan->spec.sweep, query.point);
    status = Annotate(found.status(), "job " + job->id);
    if (found.ok()) {
      point = *found;
      status = CheckChains(*job, point, query.chains);
    }
  }
  if (!status.ok()) return parts_.executor->Schedule([done = std::move(done), status] { done(status); });
  const bool refresh = query.version == 0;
  parts_.dispatcher->PinSnapshot(
      job->id, query.version, refresh,
      [parts = parts_, job = *job, point, query, done = std::move(done)](absl::StatusOr<Snapshot> snapshot) {
        if (!snapshot.ok()) return done(snapshot.status());
        done(PinnedBy(parts.state, job, point, *snapshot, query));
      });
}

absl::StatusOr<Dataset> DispatcherDrawCatalog::GetDataset(const std::string& name) {
  return parts_.dispatcher->GetDataset(name);
}

void DispatcherDrawCatalog::MarkCorrupt(const std::string& job, const std::string& object) {
  Log(LogLevel::kError, "a stored draw does not match its digest and is left out from now on",
      {{"job", job}, {"object", object}});
  parts_.metrics->CountCorruptDraw();
  parts_.dispatcher->MarkCorrupt(job, object, [job](absl::StatusOr<bool> marked) {
    if (!marked.ok())
      Log(LogLevel::kError, "marking a draw corrupt failed", {{"job", job}, {"error", marked.status().ToString()}});
  });
}

}  // namespace chainfleet
