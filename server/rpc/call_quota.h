// An interceptor that bounds the calls of one tenant in flight, and the changes of one caller.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <memory>

#include "core/base/clock.h"
#include "server/rpc/auth.h"

namespace chainfleet {

// Marks each call of a tenant that already has access.tenant_calls in flight, and each call that would change something
// when its caller has made access.changes_at_once of them and then one a second. The second bound keeps one caller from
// filling the audit log, which has a line for each change. Authenticator::CallerOf refuses a marked call as
// RESOURCE_EXHAUSTED / TENANT_LIMIT. A stream counts until it ends. Calls of workers do not count. Without tokens no
// call counts, because strangers would use up the calls of the only tenant. The pointers outlive the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallQuota(const Authenticator* auth,
                                                                                     const Clock* clock,
                                                                                     const AccessOptions& access);

}  // namespace chainfleet
