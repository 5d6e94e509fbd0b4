// PredictService of predict.proto: parse, one call, render.
#pragma once

#include "chainfleet/v1/predict.grpc.pb.h"
#include "server/predict/evaluation/evaluation_operations.h"
#include "server/predict/serving/batcher.h"
#include "server/rpc/services.h"
#include "server/rpc/unary_call.h"

namespace chainfleet {

class PredictService final : public v1::PredictService::CallbackService {
 public:
  // Both outlive the service.
  PredictService(ServiceParts parts, Batcher* batcher, EvaluationOperations* evaluations)
      : parts_(std::move(parts)), batcher_(batcher), evaluations_(evaluations) {}

  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* Predict(Context* context, const v1::PredictRequest* request,
                                    v1::PredictResponse* response) override;
  grpc::ServerWriteReactor<v1::EvaluateUpdate>* Evaluate(Context* context, const v1::EvaluateRequest* request) override;
  grpc::ServerUnaryReactor* StartEvaluation(Context* context, const v1::EvaluateRequest* request,
                                            v1::EvaluationOperation* response) override;
  grpc::ServerUnaryReactor* GetEvaluation(Context* context, const v1::GetEvaluationRequest* request,
                                          v1::EvaluationOperation* response) override;
  grpc::ServerUnaryReactor* ListEvaluations(Context* context, const v1::ListEvaluationsRequest* request,
                                            v1::ListEvaluationsResponse* response) override;
  grpc::ServerUnaryReactor* CancelEvaluation(Context* context, const v1::GetEvaluationRequest* request,
                                             v1::EvaluationOperation* response) override;

 private:
  using Viewed = std::function<void(absl::StatusOr<EvaluationOperations::View>)>;
  struct PredictionCall;
  using OperationAnswer = std::shared_ptr<PendingAnswer<v1::EvaluationOperation>>;

  void Send(PredictionCall call);
  absl::StatusOr<EvaluationOperations::Asked> AskedBy(const Context& context, const v1::EvaluateRequest& request) const;
  static Viewed Rendering(const OperationAnswer& answer);
  // Finds an evaluation of the caller's tenant. Evaluations of other tenants are NOT_FOUND.
  void WithOwn(const Context& context, const std::string& id, const OperationAnswer& answer,
               std::function<void(const EvaluationOperations::View&)> then);

  const ServiceParts parts_;
  Batcher* const batcher_;
  EvaluationOperations* const evaluations_;
};

}  // namespace chainfleet
