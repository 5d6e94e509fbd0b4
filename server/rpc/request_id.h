// The request id that connects the log lines of one request at the server and the workers.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Metadata key under which the CallRecord stores the call's method ("/chainfleet.v1.JobService/GetJob").
inline constexpr char kMethodHeader[] = "x-chainfleet-method";
// Metadata key under which the call quota (call_quota.h) marks a call beyond a bound, and the mark's values.
inline constexpr char kOverQuotaHeader[] = "x-chainfleet-over-quota";
inline constexpr char kTooManyCalls[] = "calls", kTooManyChanges[] = "changes";

using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// The trace id of a well-formed W3C `traceparent`, else an `x-request-id` of 1 to 64 characters of [A-Za-z0-9._-], else
// "". A header that is given twice is ignored.
std::string GivenRequestId(const CallMetadata& metadata);

// The id of a call to a server with a CallRecord (call_record.h), else "".
std::string RequestIdOf(const grpc::CallbackServerContext& context);

// INVALID_ARGUMENT: the `request_id` of a message, by which a repeated call makes nothing new, has more than 128 bytes
// or others than printable ASCII. It is a key in the store.
absl::Status CheckRequestKey(const std::string& request_id);

}  // namespace chainfleet
