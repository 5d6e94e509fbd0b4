// How many calls of one tenant a server has at a time, counted by an interceptor.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <memory>

#include "server/rpc/auth.h"

namespace chainfleet {

// Marks every call of a tenant beyond the `most` that it has in flight; Authenticator::CallerOf refuses a marked call
// as RESOURCE_EXHAUSTED / TENANT_LIMIT. Streams count until they end, calls of workers do not count; without
// tokens nobody's do, because strangers would use up the one tenant's calls. `auth` outlives
// the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallQuota(const Authenticator* auth,
                                                                                     int64_t most);

}  // namespace chainfleet
