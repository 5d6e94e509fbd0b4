#include "server/rpc/job_service.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/limits.h"
#include "core/base/version.h"
#include "core/domain/sweep_points.h"
#include "core/wire/field_wire.h"
#include "core/wire/jobs_wire.h"
#include "core/wire/presets.h"
#include "core/wire/types_wire.h"
#include "server/adapters/dispatcher_draw_catalog.h"
#include "server/control/page_token.h"
#include "server/rpc/blob_stream.h"
#include "server/rpc/dataset_upload_call.h"
#include "server/rpc/job_render.h"
#include "server/rpc/job_watch.h"
#include "server/rpc/model_intake.h"
#include "server/rpc/model_upload_call.h"
#include "server/rpc/request_id.h"
#include "server/rpc/unary_call.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kMinWatchInterval = absl::Milliseconds(50), kDefaultWatchInterval = absl::Milliseconds(500),
                         kMaxWatchInterval = absl::Minutes(1);

constexpr char kNotYetRead[] = "names files by URI, which are read and stored at the submission: put them first";

Reader ReaderOf(const Principal& caller) { return {caller.tenant, caller.may(kFleet)}; }

change::ShareContent HowToShare(const v1::ShareRequest& request) {
  return {.tenants = {request.tenants().begin(), request.tenants().end()}, .stop = request.stop()};
}

// Chains in [first, end).
struct ChainRange {
  int32_t first = 0, end = 0;
};

absl::StatusOr<ChainRange> ChainsAsked(const JobSpec& spec, const v1::ListSegmentsRequest& request) {
  if (!request.has_point()) return ChainRange{0, NumChains(spec)};
  CHAINFLEET_ASSIGN_OR_RETURN(const int32_t point, FindPoint(spec.sweep, request.point()));
  return ChainRange{point * spec.chains, (point + 1) * spec.chains};
}

v1::ListSegmentsResponse::ChainResume RenderResume(const ResumeRow& row) {
  v1::ListSegmentsResponse::ChainResume resume;
  resume.set_chain(row.chain);
  resume.set_last_digest(row.last_digest);
  v1::ResumePoint* const point = resume.mutable_resume_point();
  point->set_step(row.step);
  point->set_sha256(row.sha256);
  if (row.proof) *point->mutable_proof() = Written<v1::ResumeProof>(*row.proof);
  return resume;
}

absl::StatusOr<v1::ListSegmentsResponse> ListPage(StateStore* store, const std::string& job, const ChainRange& chains,
                                                  const v1::ListSegmentsRequest& request) {
  const std::string arguments =
      absl::StrCat("segments\n", job, "\n", request.has_chain() ? request.chain() : -1, "\n", request.point());
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string cursor, CursorOf(arguments, request.page_token()));
  StateStore::SegmentQuery query{.job = job};
  if (request.has_chain()) query.chain = request.chain();
  query.after_chain = chains.first - 1;
  query.after_first_index = std::numeric_limits<int64_t>::max();
  const std::pair<std::string, std::string> after = absl::StrSplit(cursor, ':');
  if (!cursor.empty() && (!absl::SimpleAtoi(after.first, &query.after_chain) ||
                          !absl::SimpleAtoi(after.second, &query.after_first_index))) {
    return InvalidFields({{"page_token", "is not one that this server gave for the same arguments"}});
  }
  // By chain and digest of its newest segment.
  std::map<std::pair<int32_t, DigestHex>, ResumeRow> resumes;
  if (request.resume_points()) {
    CHAINFLEET_ASSIGN_OR_RETURN(std::vector<ResumeRow> rows, store->ListResumePoints(job));
    for (ResumeRow& row : rows) resumes.emplace(std::pair(row.chain, row.last_digest), std::move(row));
  }
  v1::ListSegmentsResponse response;
  PageRoom room(static_cast<size_t>(ClampPageSize(request.page_size())));
  CHAINFLEET_RETURN_IF_ERROR(VisitSegments(store, query, [&](const SegmentRecord& record) {
    if (record.chain.index >= chains.end) return false;
    v1::SegmentRecord segment = ToProto(record);
    const auto newest = resumes.find({record.chain.index, record.segment.digest});
    v1::ListSegmentsResponse::ChainResume resume;
    if (newest != resumes.end()) resume = RenderResume(newest->second);
    // One segment of small draws lists many steps.
    if (!room.Take(static_cast<int64_t>(segment.ByteSizeLong() + resume.ByteSizeLong()))) {
      const v1::SegmentRecord& last = *response.segments().rbegin();  // `room` takes the first item, however large
      const std::string at = absl::StrCat(last.chain().index(), ":", last.segment().first_index());
      response.set_next_page_token(MakePageToken(arguments, at));
      return false;
    }
    *response.add_segments() = std::move(segment);
    if (newest != resumes.end()) *response.add_resume_points() = std::move(resume);
    return true;
  }));
  return response;
}

// Checks the bytes of a committed segment of the job. A mismatch excludes the segment's draws from then on.
BlobExpectation SegmentExpectation(const ServiceParts& parts, const std::string& job, const std::string& object) {
  return {.digest = [store = parts.state, job, object]() -> absl::StatusOr<DigestHex> {
            CHAINFLEET_ASSIGN_OR_RETURN(const SegmentRecord record, store->FindSegment(job, object));
            if (!record.deleted) return record.segment.object.sha256;
            return WithReason(absl::NotFoundError(absl::StrCat("the draws of ", object, " were deleted")),
                              "DRAWS_DELETED");
          },
          .mismatch = [parts, job, object] { MarkCorruptDraw(parts, job, object); }};
}

// Answers with the job and its findings, which come from the store if the job has ended.
void AnswerWithFindings(const ServiceParts& parts, const std::shared_ptr<PendingAnswer<v1::Job>>& answer,
                        absl::StatusOr<JobView> job) {
  if (!job.ok()) return answer->Fail(job.status());
  parts.executor->Schedule(
      [answer, findings = parts.findings, job = *std::move(job)] { answer->Answer(findings->Render(job)); });
}

}  // namespace

JobService::JobService(ServiceParts parts, ShardPort* shards, CallGate* gate, const CallsInFlight* calls,
                       PerTenant<int64_t> rows_per_second)
    : parts_(std::move(parts)),
      shards_(shards),
      gate_(gate),
      calls_(calls),
      rows_per_second_(std::move(rows_per_second)),
      row_reads_(parts_.executor, kRowReads) {
  TakeUpload<v1::Dataset>("/chainfleet.v1.JobService/PutDataset", [this](Context* context, v1::Dataset* response) {
    return new DatasetUploadCall(parts_, parts_.auth->TenantOf(*context), parts_.auth->TokenCheckOf(*context),
                                 response);
  });
  TakeUpload<v1::StoredModel>("/chainfleet.v1.JobService/PutModel", [this](Context* context,
                                                                           v1::StoredModel* response) {
    return new ModelUploadCall(parts_, parts_.auth->CallerOf(*context), parts_.auth->TokenCheckOf(*context), response);
  });
}

absl::StatusOr<JobSpec> JobService::ReadSpec(const std::string& tenant, const v1::JobSpec& proto) const {
  if (proto.preset().empty()) return FromProto(proto);
  PresetData data;
  if (!proto.dataset().name().empty()) {
    CHAINFLEET_ASSIGN_OR_RETURN(const Dataset dataset,
                                parts_.catalog->datasets().Get({tenant}, proto.dataset().name()));
    data = {dataset.num_rows, NumClasses(dataset.targets)};
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::JobSpec full, ExpandPreset(proto, data));
  return FromProto(full);
}

grpc::ServerUnaryReactor* JobService::CreateJob(Context* context, const v1::CreateJobRequest* request,
                                                v1::Job* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    if (absl::Status given = CheckRequestKey(request->request_id()); !given.ok()) return answer->Fail(given);
    const absl::StatusOr<JobSpec> spec = ReadSpec(caller->tenant, request->spec());
    if (!spec.ok()) return answer->Fail(spec.status());
    const auto* const stored = std::get_if<StoredNetworkModel>(&spec->model.kind);
    if (stored != nullptr && stored->format == ModelFormat::kTorchScript) {
      if (const absl::Status allowed = CheckModulesAllowed(parts_); !allowed.ok()) return answer->Fail(allowed);
    }
    const auto only = request->has_only_chain() ? std::optional(request->only_chain()) : std::nullopt;
    const auto create = [answer, dispatcher = parts_.dispatcher, tenant = caller->tenant, id = request->request_id(),
                         validate_only = request->validate_only(), only](const absl::StatusOr<JobSpec>& ready) {
      if (!ready.ok()) return answer->Fail(ready.status());
      dispatcher->CreateJob(
          tenant, *ready, id, validate_only,
          [answer](const absl::StatusOr<JobView>& job) { answer->Answer(job, RenderJob); }, only);
    };
    if (!HasUris(spec->init)) return create(spec);
    if (request->validate_only()) return answer->Fail(InvalidFields({{"init.weights", kNotYetRead}}));
    gate_->EndTurn(*context);  // else the tenant's other changes would wait for the files, too
    StoreWeights(
        parts_, *caller, *spec, [answer] { return answer->waits(); }, create);
  });
}

grpc::ServerUnaryReactor* JobService::GetJob(Context* context, const v1::GetJobRequest* request, v1::Job* response) {
  const absl::StatusOr<std::string> job = ResolveJob(parts_, *context, request->name());
  return ServeUnary({*context, *parts_.clock}, response, job.status(),
                    [&](auto answer) { AnswerWithFindings(parts_, answer, parts_.dispatcher->GetJob(*job)); });
}

grpc::ServerUnaryReactor* JobService::ListJobs(Context* context, const v1::ListJobsRequest* request,
                                               v1::ListJobsResponse* response) {
  const absl::StatusOr<std::string> tenant = parts_.auth->TenantOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, tenant.status(), [&](auto answer) {
    std::optional<JobState> state;
    if (!request->state().empty()) {
      const absl::StatusOr<JobState> parsed = JobStateFromString(request->state());
      if (!parsed.ok()) return answer->Fail(parsed.status());
      state = *parsed;
    }
    answer->Answer(
        parts_.dispatcher->ListJobs({*tenant, state}, ClampPageSize(request->page_size()), request->page_token()),
        [](const Page<ListedJob>& page) {
          v1::ListJobsResponse list;
          for (const ListedJob& job : page.items) *list.add_jobs() = RenderListedJob(job);
          list.set_next_page_token(page.next_page_token);
          return list;
        });
  });
}

grpc::ServerWriteReactor<v1::Job>* JobService::WatchJob(Context* context, const v1::WatchJobRequest* request) {
  const auto start = [&](const std::shared_ptr<StreamFeed<v1::Job>>& feed) {
    const absl::StatusOr<std::string> job = ResolveJob(parts_, *context, request->name());
    if (!job.ok()) return feed->End(job.status());
    {
      MutexLock lock(&mutex_);
      std::erase_if(watches_, [](const auto& watch) { return watch.expired(); });
      watches_.push_back(feed);
    }
    const absl::Duration asked = absl::Seconds(request->min_interval_seconds());
    WatchJobInto(
        feed, parts_.dispatcher, parts_.findings, parts_.executor, *job,
        asked > absl::ZeroDuration() ? std::clamp(asked, kMinWatchInterval, kMaxWatchInterval) : kDefaultWatchInterval);
  };
  return ServeStream<v1::Job>(parts_.timers, context, parts_.auth->TokenCheckOf(*context), start);
}

grpc::ServerUnaryReactor* JobService::ListEvents(Context* context, const v1::ListEventsRequest* request,
                                                 v1::ListEventsResponse* response) {
  const absl::StatusOr<std::string> job = ResolveJob(parts_, *context, request->job());
  return ServeUnary({*context, *parts_.clock}, response, job.status(),
                    [&](auto answer) { answer->Succeed(RenderEvents(parts_.events->After(*job, request->after()))); });
}

void JobService::EndWatches() {
  MutexLock lock(&mutex_);
  for (const auto& watch : watches_) {
    if (const auto feed = watch.lock()) feed->End(absl::UnavailableError("the server is shutting down: watch again"));
  }
}

grpc::ServerUnaryReactor* JobService::SetIntent(Context* context, const v1::SetIntentRequest* request,
                                                v1::Job* response) {
  const absl::StatusOr<std::string> job = ResolveJob(parts_, *context, request->name());
  return ServeUnary({*context, *parts_.clock}, response, job.status(), [&](auto answer) {
    const absl::StatusOr<JobIntent> intent = FromProto(request->intent());
    if (!intent.ok()) return answer->Fail(intent.status());
    parts_.dispatcher->SetIntent(
        *job, *intent, [answer, parts = parts_, gone = *intent == JobIntent::kDelete](absl::StatusOr<JobView> changed) {
          if (changed.ok() && gone) parts.statistics->Forget(changed->id, 0);
          AnswerWithFindings(parts, answer, std::move(changed));
        });
  });
}

grpc::ServerUnaryReactor* JobService::ScaleJob(Context* context, const v1::ScaleJobRequest* request,
                                               v1::Job* response) {
  const absl::StatusOr<std::string> job = ResolveJob(parts_, *context, request->name());
  return ServeUnary({*context, *parts_.clock}, response, job.status(), [&](auto answer) {
    if (request->chains() < 1) return answer->Fail(InvalidFields({{"chains", "must be at least 1"}}));
    parts_.dispatcher->ScaleJob(*job, request->chains(), [answer, parts = parts_](absl::StatusOr<JobView> scaled) {
      AnswerWithFindings(parts, answer, std::move(scaled));
    });
  });
}

grpc::ServerUnaryReactor* JobService::ListSegments(Context* context, const v1::ListSegmentsRequest* request,
                                                   v1::ListSegmentsResponse* response) {
  const absl::StatusOr<std::string> resolved = ResolveJob(parts_, *context, request->job());
  return ServeUnary({*context, *parts_.clock}, response, resolved.status(), [&](auto answer) {
    const absl::StatusOr<JobBrief> job = parts_.dispatcher->GetBrief(*resolved);
    if (!job.ok()) return answer->Fail(job.status());
    const absl::StatusOr<ChainRange> chains = ChainsAsked(job->plan->spec, *request);
    if (!chains.ok()) return answer->Fail(Annotate(chains.status(), "job " + job->id));
    parts_.executor->Schedule([answer, store = parts_.state, id = job->id, chains = *chains, request = *request] {
      answer->Answer(ListPage(store, id, chains, request));
    });
  });
}

grpc::ServerUnaryReactor* JobService::GetTraces(Context* context, const v1::GetTracesRequest* request,
                                                v1::Traces* response) {
  const absl::StatusOr<std::string> job = ResolveJob(parts_, *context, request->job());
  return ServeUnary({*context, *parts_.clock}, response, job.status(), [&](auto answer) {
    const std::string quantity = request->quantity().empty() ? "energy" : request->quantity();
    absl::StatusOr<JobView> view = parts_.dispatcher->GetJob(*job);
    if (!view.ok()) return answer->Fail(view.status());
    parts_.executor->Schedule([answer, findings = parts_.findings, view = *std::move(view), quantity] {
      answer->Answer(findings->TracesOf(view, quantity));
    });
  });
}

grpc::ServerWriteReactor<v1::Chunk>* JobService::ReadSegment(Context* context, const v1::ReadSegmentRequest* request) {
  const absl::StatusOr<std::string> job = ResolveJob(parts_, *context, request->job());
  if (!job.ok()) return RefuseStream<v1::Chunk>(job.status());
  return StreamBlob(parts_.blobs, parts_.executor, request->object(), parts_.auth->TokenCheckOf(*context),
                    SegmentExpectation(parts_, *job, request->object()));
}

grpc::ServerUnaryReactor* JobService::ListDatasets(Context* context, const v1::ListDatasetsRequest* request,
                                                   v1::ListDatasetsResponse* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    answer->Answer(
        parts_.catalog->datasets().List(ReaderOf(*caller), ClampPageSize(request->page_size()), request->page_token()),
        [](const Page<Dataset>& page) {
          v1::ListDatasetsResponse list;
          for (const Dataset& dataset : page.items) *list.add_datasets() = RenderDataset(dataset);
          list.set_next_page_token(page.next_page_token);
          return list;
        });
  });
}

grpc::ServerUnaryReactor* JobService::ReadRows(Context* context, const v1::ReadRowsRequest* request,
                                               v1::DatasetRowValues* response) {
  const absl::StatusOr<std::string> tenant = parts_.auth->TenantOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, tenant.status(), [&](auto answer) {
    const absl::StatusOr<Dataset> dataset = parts_.catalog->datasets().Get({*tenant}, request->dataset());
    if (!dataset.ok()) return answer->Fail(dataset.status());
    row_reads_.Schedule([answer, blobs = parts_.blobs, dataset = *dataset,
                         rows = std::vector<int64_t>(request->rows().begin(), request->rows().end())] {
      if (answer->waits()) answer->Answer(chainfleet::ReadRows(*blobs, dataset, rows), RenderRows);
    });
  });
}

grpc::ServerUnaryReactor* JobService::DeleteDataset(Context* context, const v1::DeleteDatasetRequest* request,
                                                    v1::DeleteDatasetResponse* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    parts_.catalog->DeleteDataset(ReaderOf(*caller), request->name(), [answer](absl::StatusOr<bool> deleted) {
      answer->Answer(deleted, [](bool) { return v1::DeleteDatasetResponse(); });
    });
  });
}

grpc::ServerUnaryReactor* JobService::ShareDataset(Context* context, const v1::ShareRequest* request,
                                                   v1::Dataset* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    parts_.catalog->ShareDataset(
        ReaderOf(*caller), request->name(), HowToShare(*request),
        [answer](const absl::StatusOr<Dataset>& shared) { answer->Answer(shared, RenderDataset); });
  });
}

grpc::ServerUnaryReactor* JobService::ListModels(Context* context, const v1::ListModelsRequest* request,
                                                 v1::ListModelsResponse* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    answer->Answer(
        parts_.catalog->models().List(ReaderOf(*caller), ClampPageSize(request->page_size()), request->page_token()),
        [](const Page<StoredModel>& page) {
          v1::ListModelsResponse list;
          for (const StoredModel& model : page.items) *list.add_models() = ToProto(model);
          list.set_next_page_token(page.next_page_token);
          return list;
        });
  });
}

grpc::ServerUnaryReactor* JobService::DeleteModel(Context* context, const v1::DeleteModelRequest* request,
                                                  v1::DeleteModelResponse* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    parts_.catalog->DeleteModel(ReaderOf(*caller), request->name(), [answer](absl::StatusOr<bool> deleted) {
      answer->Answer(deleted, [](bool) { return v1::DeleteModelResponse(); });
    });
  });
}

grpc::ServerUnaryReactor* JobService::ShareModel(Context* context, const v1::ShareRequest* request,
                                                 v1::StoredModel* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    parts_.catalog->ShareModel(ReaderOf(*caller), request->name(), HowToShare(*request),
                               [answer](const absl::StatusOr<StoredModel>& shared) {
                                 answer->Answer(shared, [](const StoredModel& model) { return ToProto(model); });
                               });
  });
}

grpc::ServerUnaryReactor* JobService::ListWorkers(Context* context, const v1::ListWorkersRequest* request,
                                                  v1::ListWorkersResponse* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    constexpr char kArguments[] = "workers";
    const absl::StatusOr<std::string> after = CursorOf(kArguments, request->page_token());
    if (!after.ok()) return answer->Fail(after.status());
    PageRoom room(
        static_cast<size_t>(request->page_size() > 0 ? ClampPageSize(request->page_size()) : limits::kMaxPageSize));
    std::set<std::string> serving;
    for (const ServingWorker& worker : shards_->Workers()) serving.insert(worker.id);
    v1::ListWorkersResponse list;
    for (const WorkerView& view : parts_.dispatcher->ListWorkers(caller->only_tenant())) {
      if (view.id <= *after) continue;
      v1::Worker worker = RenderWorker(view, serving.contains(view.id));
      if (!room.Take(static_cast<int64_t>(worker.ByteSizeLong()))) {
        list.set_next_page_token(MakePageToken(kArguments, list.workers().rbegin()->id()));
        break;
      }
      *list.add_workers() = std::move(worker);
    }
    answer->Succeed(std::move(list));
  });
}

grpc::ServerUnaryReactor* JobService::DrainWorker(Context* context, const v1::DrainWorkerRequest* request,
                                                  v1::Worker* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    const std::optional<std::string> only_of = caller->only_tenant();
    const auto serves = [&](const ServingWorker& worker) { return worker.id == request->worker(); };
    const bool serving = std::ranges::any_of(shards_->Workers(), serves);
    const absl::Duration limit =
        request->has_deadline_seconds() ? absl::Seconds(request->deadline_seconds()) : kDrainLimit;
    const absl::StatusOr<WorkerView> drained = parts_.dispatcher->DrainWorker(request->worker(), limit, only_of);
    if (only_of && absl::IsNotFound(drained.status())) {
      return answer->Fail(Annotate(drained.status(), absl::StrCat("workers of tenant ", *only_of, " alone")));
    }
    answer->Answer(drained, [&](const WorkerView& view) { return RenderWorker(view, serving); });
  });
}

v1::Caller JobService::RenderCaller(const Principal& caller) const {
  v1::Caller message;
  const auto add = [&](const char* name, std::optional<int64_t> used, int64_t limit) {
    v1::TenantLimit* added = message.add_limits();
    added->set_name(name);
    if (used) added->set_used(*used);
    if (limit != TenantLimits::kNone) added->set_limit(limit);
  };
  message.set_principal(caller.id);
  message.set_tenant(caller.tenant);
  message.set_role(static_cast<v1::Role>(static_cast<int>(RoleOf(caller.rights)) + 1));  // 0 is "unspecified"
  if (caller.expires_at) *message.mutable_expires_at() = ToProto(*caller.expires_at);
  if (caller.may(kRead)) {
    for (const LimitUsage& one : parts_.dispatcher->TenantUsage(caller.tenant)) add(one.name, one.used, one.limit);
  }
  if (parts_.auth->wants_tokens()) add("calls", calls_->Count(caller.tenant), calls_->LimitOf(caller.tenant));
  add("rows_per_second", std::nullopt, rows_per_second_.For(caller.tenant));
  return message;
}

grpc::ServerUnaryReactor* JobService::GetServerInfo(Context* context, const v1::GetServerInfoRequest*,
                                                    v1::ServerInfo* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    v1::ServerInfo info;
    info.set_version(kVersion);
    info.set_protocol_version(kProtocolVersion);
    info.set_oldest_protocol_version(kOldestProtocolVersion);
    info.set_store_incarnation(parts_.state->incarnation());
    info.set_generation(parts_.state->generation());
    if (caller->may(kFleet)) info.set_data_directory(parts_.data_directory);
    *info.mutable_started_at() = ToProto(parts_.started_at);
    if (parts_.admission != nullptr) info.set_worker_authority(parts_.admission->AuthorityPem());
    *info.mutable_caller() = RenderCaller(*caller);
    answer->Succeed(std::move(info));
  });
}

}  // namespace chainfleet
