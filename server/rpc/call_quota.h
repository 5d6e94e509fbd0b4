// An interceptor that bounds the calls of one tenant in flight.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <memory>

#include "server/rpc/auth.h"

namespace chainfleet {

// Marks each call of a tenant that already has `most` calls in flight. Authenticator::CallerOf refuses a marked call as
// RESOURCE_EXHAUSTED / TENANT_LIMIT. A stream counts until it ends. Calls of workers do not count. Without tokens no
// call counts, because strangers would use up the calls of the only tenant. `auth` outlives the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallQuota(const Authenticator* auth,
                                                                                     int64_t most);

}  // namespace chainfleet
