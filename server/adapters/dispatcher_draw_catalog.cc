#include "server/adapters/dispatcher_draw_catalog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/domain/sweep_points.h"
#include "core/store/draw_codec/object_names.h"
#include "server/predict/serving/draw_selection.h"

namespace chainfleet {
namespace {

std::shared_ptr<const PredictPlan> PlanOf(const JobBrief& job) {
  auto plan = std::make_shared<PredictPlan>();
  plan->job = job.id;
  plan->tenant = job.tenant;
  plan->model = job.plan->spec.model;
  plan->normalisation = job.plan->normalisation;
  plan->target_units = job.plan->target_units;
  if (job.plan->module) plan->module = job.plan->module->object;
  if (job.plan->dataset) {
    plan->input_shape = job.plan->dataset->input_shape;
    plan->targets = job.plan->dataset->targets;
  }
  return plan;
}

constexpr int32_t kMostPerRead = 256;

// Visits the segments of the chain that begin after draw `after`.
absl::Status VisitLiveSegments(StateStore* store, const ChainId& chain, const SegmentVisitor& visit,
                               int64_t after = -1) {
  const StateStore::SegmentQuery query{.job = chain.job,
                                       .chain = chain.index,
                                       .after_chain = chain.index,
                                       .after_first_index = after,
                                       .live_only = true};
  return VisitSegments(store, query, visit, kMostPerRead);
}

// Returns the approximate bytes of the segment in memory.
int64_t HeldBytes(const Segment& segment) {
  const size_t text =
      segment.object.name.size() + segment.object.sha256.size() + segment.digest.size() + segment.parent_digest.size();
  const size_t draws = segment.steps.size() * sizeof(int64_t) + segment.weights.size() * sizeof(double);
  return static_cast<int64_t>(sizeof(Segment) + text + draws + segment.kinds.size() * sizeof(DrawKind));
}

// Returns the readable draws of the chain among its first `in_version`, and adds their bytes in memory to `bytes`. The
// segments of `earlier`, the same chain in an earlier version, are not read again.
absl::StatusOr<ChainDraws> ReadChain(StateStore* store, const ChainId& chain, int64_t in_version,
                                     const ChainDraws* earlier, int64_t* bytes) {
  ChainDraws draws{.chain = chain};
  const auto take = [&](Segment segment) {
    draws.num_draws += std::min(in_version - segment.first_index, segment.num_draws());
    *bytes += HeldBytes(segment);
    draws.segments.push_back(std::move(segment));
  };
  if (earlier != nullptr) {
    for (const Segment& segment : earlier->segments) take(segment);
  }
  const int64_t after = draws.segments.empty() ? -1 : draws.segments.back().first_index;
  const auto visit = [&](SegmentRecord record) {
    const bool within = record.segment.first_index < in_version;
    if (within && !record.corrupt) take(std::move(record.segment));
    return within;
  };
  CHAINFLEET_RETURN_IF_ERROR(VisitLiveSegments(store, chain, visit, after));
  return draws;
}

const ChainDraws* FindChain(const std::vector<ChainDraws>* chains, int32_t index) {
  if (chains == nullptr) return nullptr;
  const auto found = std::ranges::lower_bound(*chains, index, {}, [](const ChainDraws& c) { return c.chain.index; });
  return found != chains->end() && found->chain.index == index ? &*found : nullptr;
}

// Reads all chains of the point that have draws in the version, in any state. `earlier`: the point in an earlier
// version of the job, or null.
absl::StatusOr<KeptVersions::Loaded> ReadVersion(StateStore* store, const JobSpec& spec, const Version& version,
                                                 int32_t point, const std::vector<ChainDraws>* earlier) {
  auto chains = std::make_shared<std::vector<ChainDraws>>();
  int64_t bytes = 0;
  for (size_t i = 0; i < version.draws_of_chain.size(); ++i) {
    const ChainId chain{version.job, static_cast<int32_t>(i)};
    if (PointOf(spec, chain.index) != point || version.DrawsOf(chain.index) == 0) continue;
    CHAINFLEET_ASSIGN_OR_RETURN(ChainDraws draws, ReadChain(store, chain, version.DrawsOf(chain.index),
                                                            FindChain(earlier, chain.index), &bytes));
    chains->push_back(std::move(draws));
  }
  return KeptVersions::Loaded{std::move(chains), bytes};
}

// Returns the prefix of the keys of all versions of the job.
std::string KeysOf(const std::string& job) { return absl::StrCat(job, "/"); }

bool Failed(ChainState state) { return state == ChainState::kFailed || state == ChainState::kDiverged; }

// INVALID_ARGUMENT for a chain that does not belong to the point, or to the job without a sweep.
absl::Status CheckChains(const JobBrief& job, int32_t point, const std::vector<int32_t>& chains) {
  const JobSpec& spec = job.plan->spec;
  std::vector<int32_t> there;
  for (int32_t chain = 0; chain < NumChains(spec); ++chain) {
    if (PointOf(spec, chain) == point) there.push_back(chain);
  }
  for (const int32_t chain : chains) {
    if (std::ranges::binary_search(there, chain)) continue;
    const std::string name = PointName(spec.sweep, point);
    return absl::InvalidArgumentError(absl::StrCat("job ", job.id, name.empty() ? "" : " at " + name, " has no chain ",
                                                   chain, ": its chains are ", there.front(), " to ", there.back()));
  }
  return absl::OkStatus();
}

// `states` are the states of the job's chains; `in_version` is the result of ReadVersion.
absl::StatusOr<PinnedDraws> PinnedBy(const JobBrief& job, const std::vector<ChainState>& states, int32_t point,
                                     const Version& version, const std::vector<ChainDraws>& in_version,
                                     const DrawQuery& query) {
  const JobSpec& spec = job.plan->spec;
  PinnedDraws pinned{
      .plan = PlanOf(job), .version = version.number, .point = PointName(spec.sweep, point), .kinds = KindsOf(spec)};
  if (job.plan->dataset) pinned.learned = job.plan->dataset->input_type;
  std::vector<const ChainDraws*> readable;
  for (const ChainDraws& draws : in_version) {
    const int32_t chain = draws.chain.index;
    if (Failed(states[static_cast<size_t>(chain)]) && !query.include_failed) continue;
    pinned.draws_in_version += version.DrawsOf(chain);
    if (query.chains.empty() || std::ranges::count(query.chains, chain) > 0) readable.push_back(&draws);
  }
  pinned.chains = SelectDraws(query, readable);
  if (!pinned.chains.empty()) return pinned;
  return WithReason(absl::FailedPreconditionError(absl::StrCat("version ", version.number, " of job ", job.id,
                                                               pinned.point.empty() ? "" : ", at " + pinned.point + ",",
                                                               " has no readable draw of a chain that did not fail")),
                    "NO_DRAWS");
}

// CANCEL and DELETE stop predictions; the draws of a cancelled job can still be exported.
absl::StatusOr<JobBrief> ServedJob(Dispatcher* dispatcher, const std::string& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(JobBrief job, dispatcher->GetBrief(id));
  if (job.plan->spec.kind == JobKind::kSbc) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "job ", job.id, " calibrates a sampler (kind: sbc): its chains have posteriors of different ",
                          "data, so it predicts nothing. Submit its file with kind: posterior")),
                      "SBC_JOB");
  }
  if (job.intent < JobIntent::kCancel) return job;
  const char* hint =
      job.intent == JobIntent::kDelete ? "its draws go as well" : "its draws can be exported until it is deleted";
  return WithReason(absl::FailedPreconditionError(absl::StrCat("job ", job.id, " is not served: it was ",
                                                               Participle(job.intent), ", and ", hint)),
                    "NOT_SERVED");
}

}  // namespace

DispatcherDrawCatalog::DispatcherDrawCatalog(DrawCatalogParts parts, int64_t max_kept_bytes)
    : parts_(std::move(parts)), kept_(std::make_shared<KeptVersions>(max_kept_bytes, parts_.executor)) {
  parts_.writer->OnDrawsChanged([kept = kept_](const std::string& job) { kept->Drop(KeysOf(job)); });
}

void DispatcherDrawCatalog::Pin(const DrawQuery& query, std::function<void(absl::StatusOr<PinnedDraws>)> done) {
  const absl::StatusOr<JobBrief> job = ServedJob(parts_.dispatcher, query.job);
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
  const auto pin = [parts = parts_, kept = kept_, job = *job, point, query,
                    done = std::move(done)](const absl::StatusOr<Version>& found) {
    if (!found.ok()) return done(found.status());
    const std::string keys = absl::StrCat(KeysOf(job.id), point, "/");  // all versions of the point have it, in their order
    const std::string key = absl::StrCat(keys, absl::Dec(found->number, absl::kZeroPad20));
    const auto load = [&](const std::function<void(absl::StatusOr<KeptVersions::Loaded>)>& loaded) {
      parts.executor->Schedule(
          [state = parts.state, kept, plan = job.plan, point, version = *found, keys, key, loaded] {
            loaded(ReadVersion(state, plan->spec, version, point, kept->Before(key, keys).get()));
          });
    };
    kept->Get(key, load,
              [parts, job, point, query, done,
               version = *found](const absl::StatusOr<std::shared_ptr<const std::vector<ChainDraws>>>& draws) {
                if (!draws.ok()) return done(draws.status());
                const absl::StatusOr<std::vector<ChainState>> states = parts.dispatcher->GetChainStates(job.id);
                if (!states.ok()) return done(states.status());
                done(PinnedBy(job, *states, point, version, **draws, query));
              });
  };
  if (query.pinned != nullptr) return parts_.executor->Schedule([pin, pinned = query.pinned] { pin(*pinned); });
  parts_.versions->Pin(job->id, query.version, /*refresh=*/query.version == 0, pin);
}

void DispatcherDrawCatalog::FindVersion(const std::string& job, int64_t number,
                                        std::function<void(absl::StatusOr<std::shared_ptr<const Version>>)> done) {
  const absl::StatusOr<JobBrief> brief = ServedJob(parts_.dispatcher, job);
  if (!brief.ok()) {
    return parts_.executor->Schedule([done = std::move(done), status = brief.status()] { done(status); });
  }
  parts_.versions->Pin(brief->id, number, /*refresh=*/false, [done = std::move(done)](absl::StatusOr<Version> version) {
    if (!version.ok()) return done(version.status());
    done(std::make_shared<const Version>(*std::move(version)));
  });
}

bool HasReadableDraws(const DrawCatalogParts& parts, const std::string& job, const Version* version) {
  const absl::StatusOr<std::vector<ChainState>> states = parts.dispatcher->GetChainStates(job);
  if (!states.ok()) return false;
  bool found = false;
  for (size_t i = 0; i < states->size() && !found; ++i) {
    if (Failed((*states)[i])) continue;
    const ChainId chain{job, static_cast<int32_t>(i)};
    const absl::Status read = VisitLiveSegments(parts.state, chain, [&](const SegmentRecord& record) {
      const bool within = version == nullptr || record.segment.first_index < version->DrawsOf(chain.index);
      found = within && !record.corrupt;
      return within && !found;
    });
    if (!read.ok()) return false;
  }
  return found;
}

absl::StatusOr<Dataset> DispatcherDrawCatalog::GetDataset(const std::string& job, const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(const JobBrief brief, parts_.dispatcher->GetBrief(job));
  return parts_.catalog->datasets().Get({brief.tenant}, name);
}

void DispatcherDrawCatalog::MarkCorrupt(const std::string& job, const std::string& object) {
  MarkCorruptDraw(parts_, job, object);
}

void MarkCorruptDraw(const DrawCatalogParts& parts, const std::string& job, const std::string& object) {
  std::vector<LogField> fields = {{"job", job}, {"object", object}};
  if (const auto name = ParseChainObjectName(object)) {
    fields.emplace_back("chain", name->chain.index);
    fields.emplace_back("lease_epoch", name->lease_epoch);
  }
  Log(LogLevel::kError, "stored draw is missing or does not match its digest: it is no longer served", fields);
  parts.count_corrupt_draw();
  parts.versions->MarkCorrupt(job, object, [fields](absl::StatusOr<bool> marked) mutable {
    if (marked.ok()) return;
    fields.emplace_back("error", marked.status().ToString());
    Log(LogLevel::kError, "marking a draw corrupt failed", fields);
  });
}

}  // namespace chainfleet
