// The parameters of a ModelInferRequest.
#pragma once

#include "core/base/status.h"
#include "core/wire/inference_wire.h"
#include "inference/grpc_service.pb.h"

namespace chainfleet {

// Copies parameters into the fields of `call` with the same names. The protocol has no lists: kinds, chains and
// quantiles are strings with commas. INVALID_ARGUMENT for an unknown or malformed parameter lists the valid ones.
absl::Status TakeParameters(const inference::ModelInferRequest& request, InferenceCall* call);

}  // namespace chainfleet
