// PredictService of predict.proto: parse, one call, render.
#pragma once

#include "chainfleet/v1/predict.grpc.pb.h"
#include "server/predict/batcher.h"
#include "server/predict/evaluation.h"
#include "server/rpc/services.h"

namespace chainfleet {

class PredictService final : public v1::PredictService::CallbackService {
 public:
  // Both outlive the service.
  PredictService(ServiceParts parts, Batcher* batcher, Evaluator* evaluator)
      : parts_(std::move(parts)), batcher_(batcher), evaluator_(evaluator) {}

  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* Predict(Context* context, const v1::PredictRequest* request,
                                    v1::PredictResponse* response) override;
  grpc::ServerWriteReactor<v1::EvaluateUpdate>* Evaluate(Context* context, const v1::EvaluateRequest* request) override;

 private:
  const ServiceParts parts_;
  Batcher* const batcher_;
  Evaluator* const evaluator_;
};

}  // namespace chainfleet
