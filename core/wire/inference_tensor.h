// Maps input tensors of the Open Inference Protocol to InputTensor.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "inference/grpc_service.pb.h"

namespace chainfleet {

// UINT8 stays; FP32, FP16, BF16 and FP64 become float32. `raw`: the tensor's bytes, which the function takes, or null
// if tensor.contents() holds them. INVALID_ARGUMENT names the tensor: datatype, shape, contents together with raw
// bytes, contents of another datatype, size, a finite value beyond float32.
absl::StatusOr<InputTensor> InputFromProto(const inference::ModelInferRequest::InferInputTensor& tensor,
                                           std::string* raw);

// The same for an input that is a part of a row. All datatypes become float32, also INT64, INT32 and BOOL.
// INVALID_ARGUMENT too for a whole number beyond 2^24.
absl::StatusOr<InputTensor> ColumnFromProto(const inference::ModelInferRequest::InferInputTensor& tensor,
                                            std::string* raw);

}  // namespace chainfleet
