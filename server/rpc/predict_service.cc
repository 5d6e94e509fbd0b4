#include "server/rpc/predict_service.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/wire/evaluation_wire.h"
#include "core/wire/predict_wire.h"
#include "core/wire/types_wire.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/unary_call.h"

namespace chainfleet {
namespace {

absl::Status CheckSelection(const v1::DrawSelection& selection) {
  std::vector<FieldViolation> violations;
  if (selection.version() < 0) violations.push_back({"selection.version", "must be 0 (newest) or a version number"});
  if (selection.members() < 0) violations.push_back({"selection.members", "must be 0 (all) or a number of draws"});
  return InvalidFields(violations);
}

DrawQuery QueryOf(const NamedDraws& draws, const v1::DrawSelection& selection) {
  return {.job = draws.job.id,
          .version = draws.version == nullptr ? selection.version() : draws.version->number,
          .members = selection.members(),
          .include_failed = selection.include_failed(),
          .point = selection.point(),
          .pinned = draws.version};
}

}  // namespace

grpc::ServerUnaryReactor* PredictService::Predict(Context* context, const v1::PredictRequest* request,
                                                  v1::PredictResponse* response) {
  return ServeUnary(response, [&](auto answer) {
    const absl::StatusOr<NamedDraws> draws =
        ResolveDraws(parts_, *context, request->job(), request->selection().version());
    if (!draws.ok()) return answer->Fail(draws.status());
    if (const absl::Status status = CheckSelection(request->selection()); !status.ok()) return answer->Fail(status);
    const auto kinds = KindsFromProto(request->selection().kinds());
    if (!kinds.ok()) return answer->Fail(kinds.status());
    absl::StatusOr<InputTensor> inputs = FromProto(request->inputs());
    if (!inputs.ok()) return answer->Fail(inputs.status());
    PredictQuery query{
        .draws = QueryOf(*draws, request->selection()), .kinds = *kinds, .min_draws = request->min_draws()};
    answer->OnCancelled(
        batcher_->Predict(std::move(query), std::make_shared<const InputTensor>(*std::move(inputs)),
                          TimeLeft(*context, *parts_.clock, std::min(limits::kPredictDeadline, parts_.longest_call)),
                          PredictPriority::kNormal, [answer](absl::StatusOr<Prediction> prediction) {
                            answer->Answer(prediction, [](const Prediction& value) { return ToProto(value); });
                          }));
  });
}

grpc::ServerWriteReactor<v1::EvaluateUpdate>* PredictService::Evaluate(Context* context,
                                                                       const v1::EvaluateRequest* request) {
  return ServeStream<v1::EvaluateUpdate>([&](const std::shared_ptr<StreamFeed<v1::EvaluateUpdate>>& feed) {
    const absl::StatusOr<NamedDraws> draws =
        ResolveDraws(parts_, *context, request->job(), request->selection().version());
    if (!draws.ok()) return feed->End(draws.status());
    if (const absl::Status status = CheckSelection(request->selection()); !status.ok()) return feed->End(status);
    const auto kinds = KindsFromProto(request->selection().kinds());
    if (!kinds.ok()) return feed->End(kinds.status());
    if (request->ece_bins() < 0 || request->ece_bins() > 1000) {
      return feed->End(
          InvalidFields({{"ece_bins", absl::StrCat("must be 1 to 1000 (default 15), is ", request->ece_bins())}}));
    }
    EvaluateQuery query{.draws = QueryOf(*draws, request->selection()),
                        .kinds = *kinds,
                        .dataset = request->dataset(),
                        .ood_dataset = request->ood_dataset(),
                        .calibration_dataset = request->calibration_dataset(),
                        .ece_bins = request->ece_bins() == 0 ? 15 : request->ece_bins()};
    feed->OnCancelled(evaluator_->Evaluate(
        std::move(query), TimeLeft(*context, *parts_.clock, parts_.longest_call),
        [feed](const EvaluationProgress& progress) {
          v1::EvaluateUpdate update;
          update.mutable_progress()->set_rows_done(progress.rows_done);
          update.mutable_progress()->set_rows_total(progress.rows_total);
          feed->Send(std::move(update), /*replace=*/true);
        },
        [feed](absl::StatusOr<Evaluation> evaluation) {
          if (evaluation.ok()) {
            v1::EvaluateUpdate update;
            *update.mutable_evaluation() = ToProto(*evaluation);
            feed->Send(std::move(update));
          }
          feed->End(evaluation.status());
        }));
  });
}

}  // namespace chainfleet
