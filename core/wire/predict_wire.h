// Maps shards, predictions and evaluations of worker.proto and predict.proto to and from core/domain.
#pragma once

#include "chainfleet/v1/predict.pb.h"
#include "chainfleet/v1/worker.pb.h"
#include "core/base/status.h"
#include "core/domain/evaluation.h"
#include "core/domain/prediction.h"

namespace chainfleet {

v1::Tensor ToProto(const InputTensor& tensor);
// Does not compare shape and bytes, because the comparison needs the network's input shape.
absl::StatusOr<InputTensor> FromProto(v1::Tensor proto);

v1::ShardRequest ToProto(const ShardRequest& request);
// INVALID_ARGUMENT unless exactly one of inputs and rows is set.
absl::StatusOr<ShardRequest> FromProto(v1::ShardRequest proto);

v1::ShardResult ToProto(const ShardResult& result);
absl::StatusOr<ShardResult> FromProto(const v1::ShardResult& proto);

v1::PredictResponse ToProto(const Prediction& prediction);
absl::StatusOr<Prediction> FromProto(const v1::PredictResponse& proto);

v1::Evaluation ToProto(const Evaluation& evaluation);
Evaluation FromProto(const v1::Evaluation& proto);

}  // namespace chainfleet
