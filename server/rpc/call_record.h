// Gives every RPC its id, counts and logs how it ended, whatever its service, by an interceptor.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/base/rng_key.h"
#include "server/telemetry/server_metrics.h"

namespace chainfleet {

// What a ServerBuilder takes. The id is what the client gave (request_id.h) or made from `ids`; handlers find it by
// RequestIdOf, clients in the initial and trailing metadata as x-request-id and in an error's RequestInfo.
//
// Logged are {request, method, code, duration_ms} and what the messages name of job, chain, lease_epoch, worker and
// evaluation: calls that fail for a reason of the server's as warnings, others that fail and those that change
// something for a user as info, the rest as debug. `metrics` may be null; what is given outlives the server.
std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> MakeCallRecord(
    const Clock* clock, RngKey ids, ServerMetrics* metrics);

}  // namespace chainfleet
