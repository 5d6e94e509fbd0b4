#include "server/rpc/inference_service.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/content_limits.h"
#include "core/base/limits.h"
#include "core/base/version.h"
#include "core/wire/inference_outputs.h"
#include "server/adapters/dispatcher_draw_catalog.h"
#include "server/predict/serving/call_bounds.h"
#include "server/predict/serving/draw_selection.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/failure_count.h"
#include "server/rpc/held_reply.h"
#include "server/rpc/request_id.h"
#include "server/rpc/selection_query.h"
#include "server/rpc/unary_call.h"

namespace chainfleet {
namespace {

constexpr char kPlatform[] = "chainfleet_bayesian_model_average";
constexpr int64_t kClassTextBytes = 64;  // a class as text, without its name

void SetDuration(uint64_t count, absl::Duration time, inference::StatisticDuration* proto) {
  proto->set_count(count);
  proto->set_ns(static_cast<uint64_t>(absl::ToInt64Nanoseconds(time)));
}

// `Proto` is InferStatistics or InferBatchStatistics.
template <typename Proto>
void SetCompute(uint64_t count, const ComputeTimes& times, Proto* proto) {
  SetDuration(count, times.input, proto->mutable_compute_input());
  SetDuration(count, times.infer, proto->mutable_compute_infer());
  SetDuration(count, times.output, proto->mutable_compute_output());
}

// `name` is the name that the client gave; empty means the model's id.
inference::ModelStatistics Render(const InferenceCount& count, const std::string& name) {
  inference::ModelStatistics proto;
  proto.set_name(name.empty() ? count.model : name);
  proto.set_version(absl::StrCat(count.version));
  proto.set_last_inference(static_cast<uint64_t>(absl::ToUnixMillis(count.last)));
  proto.set_inference_count(count.rows);
  proto.set_execution_count(count.executions);
  inference::InferStatistics* requests = proto.mutable_inference_stats();
  SetDuration(count.succeeded, count.success.total, requests->mutable_success());
  SetDuration(count.failed, count.fail_time, requests->mutable_fail());
  SetDuration(count.succeeded, count.success.queue, requests->mutable_queue());
  SetCompute(count.succeeded, count.success.compute, requests);
  for (const auto& [rows, batch] : count.batches) {
    inference::InferBatchStatistics* of_size = proto.add_batch_stats();
    of_size->set_batch_size(static_cast<uint64_t>(rows));
    SetCompute(batch.executions, batch.compute, of_size);
  }
  return proto;
}

// `datatype` is one that InferenceInputs or InferenceOutputs returns.
inference::DataType TypeOf(const std::string& datatype) {
  inference::DataType type = inference::TYPE_INVALID;
  inference::DataType_Parse("TYPE_" + datatype, &type);
  return type;
}

std::vector<InferenceTensor> InputsOf(const JobBrief& job) {
  return InferenceInputs(job.plan->dataset->input_shape, job.plan->dataset->input_type, ColumnsOf(*job.plan));
}

void Describe(const InferenceTensor& tensor, inference::ModelMetadataResponse::TensorMetadata* proto) {
  proto->set_name(tensor.name);
  proto->set_datatype(tensor.datatype);
  proto->add_shape(-1);
  proto->mutable_shape()->Add(tensor.row_shape.begin(), tensor.row_shape.end());
}

// `Proto` is ModelInput or ModelOutput.
template <typename Proto>
void Configure(const InferenceTensor& tensor, Proto* proto) {
  proto->set_name(tensor.name);
  proto->set_data_type(TypeOf(tensor.datatype));
  proto->mutable_dims()->Add(tensor.row_shape.begin(), tensor.row_shape.end());
}

// Describes how the network scales x, (x * scale - mean) / stddev, with one value for each feature or channel or one
// for all; and how it scales float32 targets, (y - mean) / stddev. Outputs of the service are in the units of y.
void DescribeScale(const JobPlan& plan, inference::ModelMetadataResponse* metadata) {
  auto& properties = *metadata->mutable_properties();
  const auto exactly = [](std::string* out, double value) { absl::StrAppendFormat(out, "%.17g", value); };
  exactly(&properties["x.scale"], plan.dataset->input_type == InputType::kUint8 ? 1.0 / 255 : 1);
  properties["x.mean"] = absl::StrJoin(plan.normalisation.Spelled().mean, ",", exactly);
  properties["x.stddev"] = absl::StrJoin(plan.normalisation.Spelled().stddev, ",", exactly);
  if (!std::holds_alternative<Numbers>(plan.dataset->targets)) return;
  exactly(&properties["y.mean"], plan.target_units.mean);
  exactly(&properties["y.stddev"], plan.target_units.stddev);
}

// Properties are strings: the names are a JSON array.
void DescribeClasses(const std::vector<std::string>& names, inference::ModelMetadataResponse* metadata) {
  if (names.empty()) return;
  google::protobuf::ListValue list;
  for (const std::string& name : names) list.add_values()->set_string_value(name);
  std::string* const json = &(*metadata->mutable_properties())["class_names"];
  CHAINFLEET_CHECK(google::protobuf::util::MessageToJsonString(list, json).ok());
}

// Priority levels count from 1, the most urgent.
void Configure(const BatchLimits& limits, inference::ModelDynamicBatching* proto) {
  proto->add_preferred_batch_size(static_cast<int32_t>(limits.max_rows));
  proto->set_max_queue_delay_microseconds(static_cast<uint64_t>(absl::ToInt64Microseconds(limits.max_delay)));
  proto->set_priority_levels(kPredictPriorities);
  proto->set_default_priority_level(static_cast<uint64_t>(PredictPriority::kNormal) + 1);
  proto->mutable_default_queue_policy()->set_max_queue_size(static_cast<uint32_t>(limits.max_waiting));
}

// The newest existing versions in ascending order, at most one page. An alias has only its own version.
absl::StatusOr<std::vector<int64_t>> VersionsOf(StateStore* store, const JobBrief& job, const Version* pinned) {
  std::vector<int64_t> numbers;
  if (pinned != nullptr) return numbers = {pinned->number};
  const int64_t after = std::max<int64_t>(job.newest_version - limits::kMaxPageSize, 0);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<Version> versions,
                              store->ListVersions(job.id, after, limits::kMaxPageSize));
  for (const Version& version : versions) numbers.push_back(version.number);
  return numbers;
}

// REQUIRES: CheckOutputs accepts the outputs.
absl::Status CheckReply(const InferenceCall& call, const Dataset& dataset) {
  if (call.input.shape.empty()) return absl::OkStatus();  // refused as invalid later
  const Targets& targets = dataset.targets;
  const std::vector<std::string> outputs =
      call.outputs.empty() ? UsualOutputs(targets, call.anytime, !call.quantiles.empty(), call.HasConformal())
                           : call.outputs;
  int64_t row_bytes = RowBytes(outputs, targets, static_cast<int64_t>(call.quantiles.size()));
  int64_t name_bytes = 0;
  for (const std::string& name : dataset.class_names) name_bytes += std::ssize(name);
  for (const auto& [output, count] : call.best_classes) {
    CHAINFLEET_RETURN_IF_ERROR(CheckClassification(output, targets));
    row_bytes += std::min(count, NumClasses(targets)) * kClassTextBytes + name_bytes;
  }
  return CheckReplyBytes(call.input.shape.front(), row_bytes);
}

// Leaves out the batch sizes of versions that would not fit into one message.
struct StatisticsReply {
  void Add(const InferenceCount& count, const std::string& name) {
    inference::ModelStatistics& added = *response.add_model_stats();
    added = Render(count, name);
    bytes += static_cast<int64_t>(added.ByteSizeLong());
    if (bytes <= limits::kPageBytes) return;
    bytes -= static_cast<int64_t>(added.ByteSizeLong());
    added.clear_batch_stats();
    bytes += static_cast<int64_t>(added.ByteSizeLong());
  }
  inference::ModelStatisticsResponse response;
  int64_t bytes = 0;
};

// Counts for each version in `known` and each other version that was requested. `version` 0 means all.
inference::ModelStatisticsResponse CountsOf(const InferenceStatistics& statistics, const std::string& job,
                                            int64_t version, const std::vector<int64_t>& known,
                                            const std::string& name) {
  std::map<int64_t, InferenceCount> counts;
  for (const int64_t number : known) {
    if (version == 0 || number == version) counts[number] = {.model = job, .version = number};
  }
  for (InferenceCount& count : statistics.Of(job, version)) counts[count.version] = std::move(count);
  StatisticsReply reply;
  for (const auto& [number, count] : counts) reply.Add(count, name);
  return reply.response;
}

// Counts of all requests to a tenant's models since the server started.
auto AllCounts(const ServiceParts& parts) {
  return [&parts](const std::string& tenant) {
    StatisticsReply reply;
    for (const InferenceCount& count : parts.statistics->Of("", 0)) {
      const absl::StatusOr<JobBrief> counted = parts.dispatcher->GetBrief(count.model);
      if (counted.ok() && counted->tenant == tenant) reply.Add(count, "");
    }
    return reply.response;
  };
}

// The parts of the call that name an evaluation or that one decides.
v1::PredictRequest PredictRequestOf(const InferenceCall& call) {
  v1::PredictRequest request;
  v1::DrawSelection& selection = *request.mutable_selection();
  selection.set_members(call.members);
  selection.set_every(call.every);
  selection.set_max_draws(call.max_draws);
  selection.set_include_failed(call.include_failed);
  selection.set_point(call.point);
  selection.mutable_chains()->Add(call.chains.begin(), call.chains.end());
  for (const DrawKind kind : call.kinds) selection.add_kinds(static_cast<v1::DrawKind>(static_cast<int>(kind) + 1));
  selection.set_weights(call.weights);
  selection.set_pseudo_bma(call.pseudo_bma);
  request.set_conformal(call.conformal);
  request.set_conformal_level(call.level);
  request.set_anytime(call.anytime);
  request.set_min_draws(call.min_draws);
  return request;
}

}  // namespace

InferenceService::InferenceService(ServiceParts parts, Batcher* batcher, EvaluationOperations* evaluations,
                                   ShardPort* workers, BytesInFlight* bytes)
    : parts_(std::move(parts)),
      batcher_(batcher),
      evaluations_(evaluations),
      workers_(workers),
      streams_(bytes, parts_.timers) {
  const auto tenant = [this](const Context& context) -> absl::StatusOr<std::string> {
    if (!parts_.auth->wants_tokens()) return "";
    return parts_.auth->TenantOf(context);
  };
  TakeStream<inference::ModelStreamInferResponse>(
      "/inference.GRPCInferenceService/ModelStreamInfer", [this, tenant](Context* context) {
        return streams_.Open(*context, {*context, *parts_.clock}, tenant(*context), parts_.auth->TokenCheckOf(*context),
                             [this, context](inference::ModelInferRequest request, const auto& answer) {
                               Infer(*context, std::move(request), answer);
                             });
      });
}

absl::StatusOr<InferenceService::Model> InferenceService::Find(const Context& context, const std::string& name,
                                                               const std::string& version) const {
  const absl::StatusOr<int64_t> wanted = VersionFromProto(version);
  absl::StatusOr<NamedDraws> draws = ResolveDraws(parts_, context, name, wanted.value_or(0));
  if (absl::IsUnauthenticated(draws.status()) || absl::IsInvalidArgument(draws.status())) return draws.status();
  CHAINFLEET_RETURN_IF_ERROR(wanted.status());
  if (!draws.ok()) {
    return WithReason(absl::NotFoundError(absl::StrCat("unknown model '", name, "'")), "JOB_NOT_FOUND");
  }
  const JobBrief& job = draws->job;
  if (!job.plan->spec.model.has_data() || !job.plan->dataset) {
    return absl::NotFoundError(absl::StrCat("'", name, "' samples an analytic potential: it makes no predictions"));
  }
  if (draws->version == nullptr && *wanted > job.newest_version) {
    return WithReason(absl::NotFoundError(absl::StrCat("unknown version '", version, "' of model '", name, "'")),
                      "VERSION_NOT_FOUND");
  }
  const int64_t number = draws->version == nullptr ? *wanted : draws->version->number;
  return Model{job, number, job.plan->dataset->targets, draws->version};
}

InferenceService::Reactor* InferenceService::ServerLive(Context* context, const inference::ServerLiveRequest*,
                                                        inference::ServerLiveResponse* response) {
  return ServeUnary({*context, *parts_.clock}, response, parts_.auth->Check(*context), [&](auto answer) {
    inference::ServerLiveResponse live;
    live.set_live(true);
    answer->Succeed(std::move(live));
  });
}

InferenceService::Reactor* InferenceService::ServerReady(Context* context, const inference::ServerReadyRequest*,
                                                         inference::ServerReadyResponse* response) {
  return ServeUnary({*context, *parts_.clock}, response, parts_.auth->Check(*context), [&](auto answer) {
    inference::ServerReadyResponse ready;
    ready.set_ready(!workers_->Workers().empty());
    answer->Succeed(std::move(ready));
  });
}

InferenceService::Reactor* InferenceService::ModelReady(Context* context, const inference::ModelReadyRequest* request,
                                                        inference::ModelReadyResponse* response) {
  return ServeUnary({*context, *parts_.clock}, response, [&](auto answer) {
    if (const absl::Status status = parts_.auth->Check(*context); !status.ok()) return answer->Fail(status);
    const absl::StatusOr<Model> model = Find(*context, request->name(), request->version());
    if (absl::IsInvalidArgument(model.status())) return answer->Fail(model.status());
    const auto say = [answer](bool is_ready) {
      inference::ModelReadyResponse ready;
      ready.set_ready(is_ready);
      answer->Succeed(std::move(ready));
    };
    if (!model.ok() || model->job.intent >= JobIntent::kCancel) return say(false);
    if (model->job.plan->spec.kind == JobKind::kSbc) return say(false);
    const auto look = [say, parts = parts_, job = model->job.id](const Version* version) {
      parts.executor->Schedule([say, parts, job, pinned = version == nullptr ? std::nullopt : std::optional(*version)] {
        say(HasReadableDraws(parts, job, pinned ? &*pinned : nullptr));
      });
    };
    if (model->version == 0 || model->pinned != nullptr) return look(model->pinned.get());
    parts_.versions->Pin(
        model->job.id, model->version, /*refresh=*/false,
        [say, look](const absl::StatusOr<Version>& version) { version.ok() ? look(&*version) : say(false); });
  });
}

InferenceService::Reactor* InferenceService::ServerMetadata(Context* context, const inference::ServerMetadataRequest*,
                                                            inference::ServerMetadataResponse* response) {
  return ServeUnary({*context, *parts_.clock}, response, parts_.auth->Check(*context), [&](auto answer) {
    inference::ServerMetadataResponse metadata;
    metadata.set_name("chainfleet");
    metadata.set_version(kVersion);
    for (const char* extension :
         {"model_configuration", "statistics", "model_repository", "binary_tensor_data", "classification"})
      metadata.add_extensions(extension);
    answer->Succeed(std::move(metadata));
  });
}

InferenceService::Reactor* InferenceService::ModelMetadata(Context* context,
                                                           const inference::ModelMetadataRequest* request,
                                                           inference::ModelMetadataResponse* response) {
  const absl::StatusOr<Model> model = Find(*context, request->name(), request->version());
  return ServeUnary({*context, *parts_.clock}, response, model.status(), [&](auto answer) {
    inference::ModelMetadataResponse metadata;
    metadata.set_name(request->name());
    metadata.set_platform(kPlatform);
    for (const InferenceTensor& tensor : InputsOf(model->job)) Describe(tensor, metadata.add_inputs());
    DescribeScale(*model->job.plan, &metadata);
    DescribeClasses(model->job.plan->dataset->class_names, &metadata);
    const std::vector<int64_t>& input_shape = model->job.plan->dataset->input_shape;
    for (const InferenceTensor& tensor : InferenceOutputs(model->targets, input_shape)) {
      Describe(tensor, metadata.add_outputs());
    }
    parts_.executor->Schedule([answer, store = parts_.state, model = *model, metadata]() mutable {
      const absl::StatusOr<std::vector<int64_t>> versions = VersionsOf(store, model.job, model.pinned.get());
      answer->Answer(versions, [&](const std::vector<int64_t>& numbers) {
        for (const int64_t number : numbers) metadata.add_versions(absl::StrCat(number));
        return metadata;
      });
    });
  });
}

InferenceService::Reactor* InferenceService::ModelConfig(Context* context, const inference::ModelConfigRequest* request,
                                                         inference::ModelConfigResponse* response) {
  return ServeUnary({*context, *parts_.clock}, response, [&](auto answer) {
    answer->Answer(Find(*context, request->name(), request->version()), [&](const Model& model) {
      inference::ModelConfigResponse reply;
      inference::ModelConfig* config = reply.mutable_config();
      config->set_name(request->name());
      config->set_platform(kPlatform);
      config->set_backend("chainfleet");
      const std::vector<int64_t>& input_shape = model.job.plan->dataset->input_shape;
      int64_t row_bytes = sizeof(float);
      for (const int64_t size : input_shape) row_bytes *= size;
      row_bytes = std::max(row_bytes, RowBytes(UsualOutputs(model.targets, false, false), model.targets, 0));
      config->set_max_batch_size(static_cast<int32_t>((limits::kMaxMessageBytes - limits::kMiB) / row_bytes));
      Configure(batcher_->limits(), config->mutable_dynamic_batching());
      for (const InferenceTensor& tensor : InputsOf(model.job)) Configure(tensor, config->add_input());
      for (const InferenceTensor& tensor : InferenceOutputs(model.targets, input_shape)) {
        Configure(tensor, config->add_output());
      }
      return reply;
    });
  });
}

InferenceService::Reactor* InferenceService::ModelStatistics(Context* context,
                                                             const inference::ModelStatisticsRequest* request,
                                                             inference::ModelStatisticsResponse* response) {
  return ServeUnary({*context, *parts_.clock}, response, [&](auto answer) {
    if (request->name().empty()) return answer->Answer(parts_.auth->TenantOf(*context), AllCounts(parts_));
    const absl::StatusOr<Model> model = Find(*context, request->name(), request->version());
    if (absl::IsNotFound(model.status())) {  // as Triton
      return answer->Fail(absl::InvalidArgumentError(model.status().message()));
    }
    if (!model.ok()) return answer->Fail(model.status());
    parts_.executor->Schedule([answer, parts = parts_, model = *model, name = request->name()] {
      const auto numbers = VersionsOf(parts.state, model.job, model.pinned.get());
      answer->Answer(numbers, [&](const std::vector<int64_t>& known) {
        return CountsOf(*parts.statistics, model.job.id, model.version, known, name);
      });
    });
  });
}

template <typename Answer>
void InferenceService::Infer(const Context& context, inference::ModelInferRequest request, const Answer& answer) {
  const absl::StatusOr<Model> model = Find(context, request.model_name(), request.model_version());
  if (!model.ok()) return answer->Fail(model.status());
  const FailureCount failure(parts_, model->job, model->version);
  absl::StatusOr<InferenceCall> parsed = FromProto(std::move(request), ColumnsOf(*model->job.plan));
  absl::Status status = parsed.status();
  if (status.ok())
    status = CheckOutputs(parsed->outputs, model->targets, !parsed->quantiles.empty(), parsed->HasConformal());
  if (status.ok()) status = CheckReply(*parsed, *model->job.plan->dataset);
  if (status.ok()) status = CheckScale(parsed->input, model->job.plan->dataset->input_type, model->job.id);
  if (!status.ok()) return failure.Fail(answer, status);
  const v1::PredictRequest asked = PredictRequestOf(*parsed);
  const absl::StatusOr<std::string> evaluation = EvaluationNamed(asked);
  if (!evaluation.ok()) return failure.Fail(answer, evaluation.status());
  const auto call = std::make_shared<InferenceCall>(*std::move(parsed));
  DrawQuery draws = QueryOf(model->job.id, asked.selection());
  draws.version = model->version;
  draws.pinned = model->pinned;
  PredictQuery query{.draws = std::move(draws),
                     .kinds = call->kinds,
                     .min_draws = call->min_draws,
                     .with_errors = call->WantsErrors(),
                     .anytime = call->anytime,
                     .members = call->WantsMembers(),
                     .gradients = call->WantsGradients(),
                     .quantiles = call->quantiles,
                     .tenant = model->job.tenant,
                     .trace_id = RequestIdOf(context)};
  const absl::Duration timeout = std::min(
      TimeLeft(context, *parts_.clock, std::min(limits::kPredictDeadline, parts_.longest_call)), call->timeout);
  PrepareQuery(evaluations_, *evaluation, asked, std::move(query),
               [this, answer, call, failure, timeout, plan = model->job.plan](absl::StatusOr<PreparedQuery> prepared) {
                 if (!prepared.ok()) return failure.Fail(answer, prepared.status());
                 Send(*std::move(prepared), call, timeout, failure, plan, answer);
               });
}

template <typename Answer>
void InferenceService::Send(PreparedQuery prepared, const std::shared_ptr<InferenceCall>& call, absl::Duration timeout,
                            const FailureCount& failure, const std::shared_ptr<const JobPlan>& plan,
                            const Answer& answer) {
  answer->OnCancelled(batcher_->Predict(
      std::move(prepared.query), std::make_shared<const InputTensor>(std::move(call->input)), timeout,
      static_cast<PredictPriority>(call->priority),
      [answer, call, failure, plan, budget = parts_.reply_budget,
       conformal = std::move(prepared.conformal)](absl::StatusOr<Prediction> prediction) {
        if (!prediction.ok()) return failure.Fail(answer, prediction.status());
        if (const absl::Status added = conformal.AddTo(&*prediction); !added.ok()) return failure.Fail(answer, added);
        SucceedHeld(answer, failure, *budget,
                    ToProto(*prediction, *call, plan->dataset->class_names, plan->dataset->input_shape));
      }));
}

InferenceService::Reactor* InferenceService::ModelInfer(Context* context, const inference::ModelInferRequest* request,
                                                        inference::ModelInferResponse* response) {
  return ServeUnary({*context, *parts_.clock}, response,
                    [&](const auto& answer) { Infer(*context, Taken(request), answer); });
}

}  // namespace chainfleet
