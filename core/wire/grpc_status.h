// Maps absl::Status to and from grpc::Status. Reasons, field violations and retry advice travel as google.rpc.Status
// details, so that clients in any language find ErrorInfo (domain "chainfleet"), BadRequest, RetryInfo and
// RequestInfo.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Shortens message and details to stay below the 8 KiB of metadata that peers accept: first drops the last field
// violations, then cuts the message. A status without a reason gets the name of its code as reason. RetryInfo has
// RetryAfterOf, where that is known, and ErrorInfo.metadata["bound"] has BoundOf.
grpc::Status ToGrpc(const absl::Status& status);

// Restores reason, bound, field violations, time until the next attempt and the request's id; ignores details of other
// domains.
absl::Status FromGrpc(const grpc::Status& status);

// Returns UNAVAILABLE for a CANCELLED without a request id, and other statuses unchanged. No chainfleet server sends
// such a CANCELLED: gRPC resets the calls of a server that ends. REQUIRES: the caller did not cancel the call.
absl::Status ResetToUnavailable(const absl::Status& status);

// Metadata key of a call's id: a client may set the id, and the server returns it.
inline constexpr char kRequestIdHeader[] = "x-request-id";

// Adds the id of the failed request as google.rpc.RequestInfo to the details. OK stays OK.
grpc::Status WithRequestId(const grpc::Status& status, const std::string& id);
absl::Status WithRequestId(absl::Status status, const std::string& id);

// Returns the id of the request, or "".
std::string RequestIdOf(const absl::Status& status);

}  // namespace chainfleet
