#include "core/wire/predict_wire.h"

#include <memory>
#include <utility>

#include "core/wire/field_wire.h"
#include "core/wire/jobs_wire.h"

namespace chainfleet {
namespace {

v1::PredictPlan PlanToProto(const PredictPlan& plan) {
  auto proto = Written<v1::PredictPlan>(plan);
  *proto.mutable_model() = ToProto(plan.model);
  if (plan.model.likelihood) *proto.mutable_likelihood() = ToProto(*plan.model.likelihood);
  return proto;
}

absl::StatusOr<PredictPlan> PlanFromProto(const v1::PredictPlan& proto) {
  CHAINFLEET_ASSIGN_OR_RETURN(auto plan, Parsed<PredictPlan>(proto));
  CHAINFLEET_ASSIGN_OR_RETURN(ModelSpec model, FromProto(proto.model()));
  plan.model.kind = std::move(model.kind);
  if (proto.has_likelihood()) {
    CHAINFLEET_ASSIGN_OR_RETURN(plan.model.likelihood, FromProto(proto.likelihood()));
  }
  return plan;
}

}  // namespace

v1::Tensor ToProto(const InputTensor& tensor) { return Written<v1::Tensor>(tensor); }

absl::StatusOr<InputTensor> FromProto(v1::Tensor proto) {
  std::string data = std::move(*proto.mutable_data());
  CHAINFLEET_ASSIGN_OR_RETURN(auto tensor, Parsed<InputTensor>(proto));
  tensor.bytes = std::move(data);
  return tensor;
}

v1::ShardRequest ToProto(const ShardRequest& request) {
  auto proto = Written<v1::ShardRequest>(request);
  *proto.mutable_plan() = PlanToProto(*request.plan);
  if (request.inputs) *proto.mutable_inputs() = ToProto(*request.inputs);
  return proto;
}

absl::StatusOr<ShardRequest> FromProto(v1::ShardRequest proto) {
  CHAINFLEET_ASSIGN_OR_RETURN(auto request, Parsed<ShardRequest>(proto));
  CHAINFLEET_ASSIGN_OR_RETURN(auto plan, PlanFromProto(proto.plan()));
  request.plan = std::make_shared<const PredictPlan>(std::move(plan));
  if (proto.has_inputs()) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto inputs, FromProto(std::move(*proto.mutable_inputs())));
    request.inputs = std::make_shared<const InputTensor>(std::move(inputs));
  } else if (!request.rows) {
    return InvalidFields({{"what", "missing; give one of inputs, rows"}});
  }
  return request;
}

v1::ShardResult ToProto(const ShardResult& result) { return Written<v1::ShardResult>(result); }
absl::StatusOr<ShardResult> FromProto(const v1::ShardResult& proto) { return Parsed<ShardResult>(proto); }

v1::PredictResponse ToProto(const Prediction& prediction) { return Written<v1::PredictResponse>(prediction); }
absl::StatusOr<Prediction> FromProto(const v1::PredictResponse& proto) { return Parsed<Prediction>(proto); }

v1::Evaluation ToProto(const Evaluation& evaluation) { return Written<v1::Evaluation>(evaluation); }
Evaluation FromProto(const v1::Evaluation& proto) { return ParsedPlain<Evaluation>(proto); }

}  // namespace chainfleet
