// The parameters of a ModelInferRequest.
#pragma once

#include "core/base/status.h"
#include "core/wire/inference_wire.h"
#include "inference/grpc_service.pb.h"

namespace chainfleet {

// Into the fields of `call` of the same names. The protocol has no lists: kinds, chains and quantiles are strings with
// commas. INVALID_ARGUMENT, with what there is or what is expected, for one that is unknown or malformed.
absl::Status TakeParameters(const inference::ModelInferRequest& request, InferenceCall* call);

}  // namespace chainfleet
