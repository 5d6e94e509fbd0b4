// absl::Status <-> grpc::Status. Reasons, field violations and retry advice travel as google.rpc.Status details, so
// that clients of any language find ErrorInfo (domain "chainfleet"), BadRequest and RetryInfo where they expect them.
#pragma once

#include <grpcpp/support/status.h>

#include "core/base/status.h"

namespace chainfleet {

// Message and details are cut so that all of it stays below the 8 KiB that peers accept as metadata: first the field
// violations that come last, then the message. NO_SERVING_WORKER gets RetryInfo.
grpc::Status ToGrpc(const absl::Status& status);

// Reason and field violations are restored; details of other domains are ignored.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace chainfleet
