// absl::Status <-> grpc::Status. Reasons, field violations and retry advice travel as google.rpc.Status details, so
// that clients of any language find ErrorInfo (domain "chainfleet"), BadRequest, RetryInfo and RequestInfo where they
// expect them.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Message and details are cut so that all of it stays below the 8 KiB that peers accept as metadata: first the field
// violations that come last, then the message. NO_SERVING_WORKER gets RetryInfo.
grpc::Status ToGrpc(const absl::Status& status);

// Reason, field violations and the request's id are restored; details of other domains are ignored.
absl::Status FromGrpc(const grpc::Status& status);

// UNAVAILABLE in place of a CANCELLED that carries no request id, other statuses unchanged. No server of ours sends such
// a CANCELLED: gRPC resets the calls of a server that ends. REQUIRES: the caller did not cancel the call itself.
absl::Status ResetToUnavailable(const absl::Status& status);

// Metadata in which a client gives its call an id, and the server tells it the one that the call has.
inline constexpr char kRequestIdHeader[] = "x-request-id";

// With the id of the request that failed, as google.rpc.RequestInfo in the details. OK stays OK.
grpc::Status WithRequestId(const grpc::Status& status, const std::string& id);
absl::Status WithRequestId(absl::Status status, const std::string& id);

// "" if there is none.
std::string RequestIdOf(const absl::Status& status);

}  // namespace chainfleet
