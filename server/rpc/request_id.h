// What ties together the lines that a request leaves in the logs of server and workers.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>

namespace chainfleet {

using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// The trace id of a well-formed W3C `traceparent`, else an `x-request-id` of 1 to 64 characters of [A-Za-z0-9._-], else
// "". What comes twice counts as not given.
std::string GivenRequestId(const CallMetadata& metadata);

// Of a call to a server with a CallRecord (call_record.h), else "".
std::string RequestIdOf(const grpc::CallbackServerContext& context);

}  // namespace chainfleet
