#include "server/rpc/predict_service.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/domain/fields.h"
#include "core/wire/predict_wire.h"
#include "core/wire/stored_message.h"
#include "core/wire/types_wire.h"
#include "server/control/page_token.h"
#include "server/predict/serving/call_bounds.h"
#include "server/predict/serving/draw_selection.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/evaluation_use.h"
#include "server/rpc/failure_count.h"
#include "server/rpc/held_reply.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/request_id.h"
#include "server/rpc/selection_query.h"
#include "server/rpc/unary_call.h"

namespace chainfleet {
namespace {

using View = EvaluationOperations::View;
using Updates = StreamFeed<v1::EvaluateUpdate>;

bool SendProgress(Updates* feed, const EvaluationProgress& progress) {
  v1::EvaluateUpdate update;
  update.mutable_progress()->set_rows_done(progress.rows_done);
  update.mutable_progress()->set_rows_total(progress.rows_total);
  return feed->Send(std::move(update), /*replace=*/true);
}

// Ends a stream with the outcome of the operation.
void SendEnd(Updates* feed, const absl::StatusOr<EvaluationRow>& row) {
  if (!row.ok()) return feed->End(row.status());
  if (row->state == EvaluationState::kCancelled) {
    return feed->End(absl::CancelledError(absl::StrCat("evaluation ", row->id, " was cancelled")));
  }
  const absl::StatusOr<v1::EvaluationOperation> operation = RenderOperation({*row, std::nullopt});
  if (!operation.ok()) return feed->End(operation.status());
  if (row->state == EvaluationState::kSucceeded) {
    v1::EvaluateUpdate update;
    *update.mutable_evaluation() = operation->evaluation();
    feed->Send(std::move(update));
  }
  feed->End(row->error);
}

absl::Status CheckDraws(const v1::PredictRequest& request) {
  CHAINFLEET_RETURN_IF_ERROR(CheckSelection(request.selection()));
  if (request.min_draws() >= 0) return absl::OkStatus();
  return InvalidFields({{"min_draws", "must be 0 (all that are readable) or a number of draws"}});
}

absl::StatusOr<v1::ListEvaluationsResponse> ListPage(StateStore* store, const std::string& tenant,
                                                     const std::string& job,
                                                     const v1::ListEvaluationsRequest& request) {
  const std::string arguments = absl::StrCat("evaluations\n", tenant, "\n", job);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string last, CursorOf(arguments, request.page_token()));
  EvaluationQuery query{.tenant = tenant, .job = job, .limit = ClampPageSize(request.page_size())};
  if (!last.empty()) {
    const absl::StatusOr<EvaluationRow> listed = store->FindEvaluation(last, tenant);
    if (absl::IsNotFound(listed.status())) return BadPageToken();
    CHAINFLEET_RETURN_IF_ERROR(listed.status());
    query.before = listed->sequence;
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<EvaluationRow> rows, store->ListEvaluations(query));
  v1::ListEvaluationsResponse response;
  PageRoom room;
  for (size_t i = 0; i < rows.size(); ++i) {
    CHAINFLEET_ASSIGN_OR_RETURN(v1::EvaluationOperation operation, RenderOperation({rows[i], std::nullopt}));
    if (!room.Take(static_cast<int64_t>(operation.ByteSizeLong()))) {
      response.set_next_page_token(MakePageToken(arguments, rows[i - 1].id));
      return response;
    }
    *response.add_evaluations() = std::move(operation);
  }
  if (static_cast<int32_t>(rows.size()) == query.limit) {
    response.set_next_page_token(MakePageToken(arguments, rows.back().id));
  }
  return response;
}

// A set has a number of one byte for each class, an interval has two numbers.
int64_t ConformalBytes(const v1::PredictRequest& request, const Targets& targets) {
  if (request.conformal().empty()) return 0;
  return std::max<int64_t>(NumClasses(targets), 2 * sizeof(double));
}

// An alias brings its own version.
DrawQuery PinnedQuery(const NamedDraws& draws, const v1::DrawSelection& selection) {
  DrawQuery query = QueryOf(draws.job.id, selection);
  if (draws.version != nullptr) query.version = draws.version->number;
  query.pinned = draws.version;
  return query;
}

absl::StatusOr<PredictPriority> PriorityOf(const std::string& name) {
  if (name.empty()) return PredictPriority::kNormal;
  if (const auto known = EnumFromName<PredictPriority>(name)) return *known;
  return InvalidFields(
      {{"priority", absl::StrCat("\"", name, "\"; allowed: ", AllEnumNames<PredictPriority>(), " (default normal)")}});
}

}  // namespace

struct PredictService::PredictionCall {
  std::shared_ptr<PendingAnswer<v1::PredictResponse>> answer;
  FailureCount failure;
  std::shared_ptr<const JobPlan> plan;
  PredictQuery query;
  std::shared_ptr<const InputTensor> inputs;
  PredictPriority priority = PredictPriority::kNormal;
  absl::Duration timeout;
  Conformal conformal = {};

  void Fail(const absl::Status& status) const { failure.Fail(answer, status); }
};

grpc::ServerUnaryReactor* PredictService::Predict(Context* context, const v1::PredictRequest* request,
                                                  v1::PredictResponse* response) {
  const absl::StatusOr<NamedDraws> draws =
      ResolveDraws(parts_, *context, request->job(), request->selection().version());
  return ServeUnary({*context, *parts_.clock}, response, draws.status(), [&](auto answer) {
    const DrawQuery asked = PinnedQuery(*draws, request->selection());
    const FailureCount failure(parts_, draws->job, asked.version);
    if (absl::Status status = CheckDraws(*request); !status.ok()) return failure.Fail(answer, status);
    const auto kinds = KindsOf(request->selection());
    if (!kinds.ok()) return failure.Fail(answer, kinds.status());
    const absl::StatusOr<std::string> evaluation = EvaluationNamed(*request);
    if (!evaluation.ok()) return failure.Fail(answer, evaluation.status());
    const absl::StatusOr<PredictPriority> priority = PriorityOf(request->priority());
    if (!priority.ok()) return failure.Fail(answer, priority.status());
    absl::StatusOr<InputTensor> inputs = FromProto(Taken(&request->inputs()));
    if (!inputs.ok()) return failure.Fail(answer, inputs.status());
    if (const std::optional<Dataset>& dataset = draws->job.plan->dataset; dataset && !inputs->shape.empty()) {
      const absl::Status fits =
          CheckReplyBytes(inputs->shape.front(), ScoreBytes(dataset->targets, request->quantiles_size()) +
                                                     ConformalBytes(*request, dataset->targets));
      if (!fits.ok()) return failure.Fail(answer, fits);
      const absl::Status scale = CheckScale(*inputs, dataset->input_type, draws->job.id);
      if (!scale.ok()) return failure.Fail(answer, scale);
    }
    PredictQuery query{.draws = asked,
                       .kinds = *kinds,
                       .min_draws = request->min_draws(),
                       .anytime = request->anytime(),
                       .members = request->member_probabilities(),
                       .gradients = request->gradients(),
                       .quantiles = {request->quantiles().begin(), request->quantiles().end()},
                       .tenant = draws->job.tenant,
                       .trace_id = RequestIdOf(*context)};
    PredictionCall call{answer,
                        failure,
                        draws->job.plan,
                        {},
                        std::make_shared<const InputTensor>(*std::move(inputs)),
                        *priority,
                        TimeLeft(*context, *parts_.clock, std::min(limits::kPredictDeadline, parts_.longest_call))};
    PrepareQuery(evaluations_, *evaluation, *request, std::move(query),
                 [this, call = std::move(call)](absl::StatusOr<PreparedQuery> prepared) mutable {
                   if (!prepared.ok()) return call.Fail(prepared.status());
                   call.query = std::move(prepared->query);
                   call.conformal = std::move(prepared->conformal);
                   Send(std::move(call));
                 });
  });
}

void PredictService::Send(PredictionCall call) {
  const auto answered = [answer = call.answer, failure = call.failure, budget = parts_.reply_budget, plan = call.plan,
                         conformal = std::move(call.conformal)](absl::StatusOr<Prediction> prediction) {
    if (!prediction.ok()) return failure.Fail(answer, prediction.status());
    if (const absl::Status added = conformal.AddTo(&*prediction); !added.ok()) return failure.Fail(answer, added);
    v1::PredictResponse reply = ToProto(*prediction);
    if (plan->dataset) {
      reply.mutable_class_names()->Add(plan->dataset->class_names.begin(), plan->dataset->class_names.end());
    }
    SucceedHeld(answer, failure, *budget, std::move(reply));
  };
  call.answer->OnCancelled(
      batcher_->Predict(std::move(call.query), std::move(call.inputs), call.timeout, call.priority, answered));
}

absl::StatusOr<EvaluationOperations::Asked> PredictService::AskedBy(const Context& context,
                                                                    const v1::EvaluateRequest& request) const {
  EvaluationOperations::Asked asked;
  CHAINFLEET_RETURN_IF_ERROR(CheckRequestKey(request.request_id()));
  CHAINFLEET_ASSIGN_OR_RETURN(const NamedDraws draws,
                              ResolveDraws(parts_, context, request.job(), request.selection().version()));
  asked.tenant = draws.job.tenant;
  asked.shared = parts_.auth->wants_tokens();
  asked.job = draws.job.id;
  v1::EvaluateRequest resolved = request;
  resolved.set_job(asked.job);
  if (draws.version != nullptr) resolved.mutable_selection()->set_version(draws.version->number);
  asked.request_id = request.request_id();
  asked.trace_id = RequestIdOf(context);
  CHAINFLEET_ASSIGN_OR_RETURN(asked.query, QueryOf(resolved));
  asked.query.draws.pinned = draws.version;
  asked.request = [resolved](int64_t version) {
    v1::EvaluateRequest pinned = resolved;
    pinned.mutable_selection()->set_version(version);
    return EncodeStored(pinned);
  };
  return asked;
}

grpc::ServerWriteReactor<v1::EvaluateUpdate>* PredictService::Evaluate(Context* context,
                                                                       const v1::EvaluateRequest* request) {
  const auto start = [&](const std::shared_ptr<Updates>& feed) {
    absl::StatusOr<EvaluationOperations::Asked> asked = AskedBy(*context, *request);
    if (!asked.ok()) return feed->End(asked.status());
    const bool alone = asked->request_id.empty();  // no client can reconnect to it
    const auto started = [feed, alone, evaluations = evaluations_](const absl::StatusOr<View>& view) {
      if (!view.ok()) return feed->End(view.status());
      const std::string id = view->row.id;
      if (alone) feed->OnCancelled([evaluations, id] { evaluations->Cancel(id, [](const absl::StatusOr<View>&) {}); });
      evaluations->Watch(
          view->row, [feed](const EvaluationProgress& progress) { return SendProgress(feed.get(), progress); },
          [feed](const absl::StatusOr<EvaluationRow>& row) { SendEnd(feed.get(), row); });
    };
    evaluations_->Start(*std::move(asked), TimeLeft(*context, *parts_.clock, limits::kPredictDeadline), started);
  };
  return ServeStream<v1::EvaluateUpdate>(parts_.timers, context, parts_.auth->TokenCheckOf(*context), start);
}

grpc::ServerUnaryReactor* PredictService::StartEvaluation(Context* context, const v1::EvaluateRequest* request,
                                                          v1::EvaluationOperation* response) {
  absl::StatusOr<EvaluationOperations::Asked> asked = AskedBy(*context, *request);
  return ServeUnary({*context, *parts_.clock}, response, asked.status(), [&](auto answer) {
    evaluations_->Start(*std::move(asked), TimeLeft(*context, *parts_.clock, limits::kPredictDeadline),
                        Rendering(answer));
  });
}

grpc::ServerUnaryReactor* PredictService::GetEvaluation(Context* context, const v1::GetEvaluationRequest* request,
                                                        v1::EvaluationOperation* response) {
  return ServeUnary({*context, *parts_.clock}, response, [&](auto answer) {
    WithOwn(*context, request->id(), answer, [answer](const View& view) { Rendering(answer)(view); });
  });
}

grpc::ServerUnaryReactor* PredictService::CancelEvaluation(Context* context, const v1::GetEvaluationRequest* request,
                                                           v1::EvaluationOperation* response) {
  return ServeUnary({*context, *parts_.clock}, response, [&](auto answer) {
    WithOwn(*context, request->id(), answer, [answer, evaluations = evaluations_](const View& view) {
      evaluations->Cancel(view.row.id, Rendering(answer));
    });
  });
}

grpc::ServerUnaryReactor* PredictService::ListEvaluations(Context* context, const v1::ListEvaluationsRequest* request,
                                                          v1::ListEvaluationsResponse* response) {
  const absl::StatusOr<std::string> tenant = parts_.auth->TenantOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, tenant.status(), [&](auto answer) {
    std::string job;
    if (!request->job().empty()) {
      const absl::StatusOr<std::string> resolved = parts_.dispatcher->ResolveJob(*tenant, request->job());
      if (!resolved.ok()) return answer->Fail(resolved.status());
      job = *resolved;
    }
    parts_.executor->Schedule([store = parts_.state, tenant = *tenant, job, request = *request, answer] {
      answer->Answer(ListPage(store, tenant, job, request));
    });
  });
}

PredictService::Viewed PredictService::Rendering(const OperationAnswer& answer) {
  return [answer](const absl::StatusOr<View>& view) {
    if (!view.ok()) return answer->Fail(view.status());
    answer->Answer(RenderOperation(*view));
  };
}

void PredictService::WithOwn(const Context& context, const std::string& id, const OperationAnswer& answer,
                             std::function<void(const View&)> then) {
  const absl::StatusOr<std::string> tenant = parts_.auth->TenantOf(context);
  if (!tenant.ok()) return answer->Fail(tenant.status());
  evaluations_->Get(id, *tenant, [answer, then = std::move(then)](const absl::StatusOr<View>& view) {
    if (!view.ok()) return answer->Fail(view.status());
    then(*view);
  });
}

}  // namespace chainfleet
