// What ties together the lines that a request leaves in the logs of server and workers.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>

namespace chainfleet {

// The server's own note of a call's method ("/chainfleet.v1.JobService/GetJob") in its metadata, by the CallRecord.
inline constexpr char kMethodHeader[] = "x-chainfleet-method";
// The server's own mark of a call beyond its tenant's bound, by the call quota (call_quota.h).
inline constexpr char kOverQuotaHeader[] = "x-chainfleet-over-quota";

using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// The trace id of a well-formed W3C `traceparent`, else an `x-request-id` of 1 to 64 characters of [A-Za-z0-9._-], else
// "". What comes twice counts as not given.
std::string GivenRequestId(const CallMetadata& metadata);

// Of a call to a server with a CallRecord (call_record.h), else "".
std::string RequestIdOf(const grpc::CallbackServerContext& context);

}  // namespace chainfleet
