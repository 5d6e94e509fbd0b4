// Counts every finished RPC, whatever its service, by an interceptor.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "core/base/clock.h"
#include "server/telemetry/server_metrics.h"

namespace chainfleet {

// Both outlive the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeRpcMetrics(const Clock* clock,
                                                                                      ServerMetrics* metrics);

}  // namespace chainfleet
