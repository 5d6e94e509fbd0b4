// The way into all services: headers and token come first, then room for the request, then the request.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <functional>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "server/rpc/auth.h"
#include "server/rpc/front_door.h"
#include "server/telemetry/server_metrics.h"

namespace chainfleet {

// gRPC reads the whole request of a unary call before it asks the service. A guarded service is asked when the headers
// are there: until the call is let in, the HTTP/2 window of its stream holds the client back.
class CallGate {
 public:
  // All outlive the gate, and the gate outlives the server. `door`: where the server's connections came in, if there is
  // one by then; any thread asks.
  CallGate(const Clock* clock, Executor* executor, const Authenticator* auth, ServerMetrics* metrics,
           std::function<FrontDoor*()> door);
  ~CallGate();

  // Returns the service to register instead of `service`, a callback service that outlives it. `name` is the full name
  // of the service in its proto. Calls are refused
  // - without a token that the server knows: UNAUTHENTICATED, before a byte of the request is read, and slowly for a
  //   host that goes on;
  // - whose request is compressed (UNIMPLEMENTED), is not whole in time (DEADLINE_EXCEEDED) or is no message of the
  //   method (INVALID_ARGUMENT);
  // - without room for their request: RESOURCE_EXHAUSTED / QUEUE_FULL.
  std::unique_ptr<grpc::Service> Guard(grpc::Service* service, const std::string& name);

  // The first interceptor of the server: it bounds replies, and cuts the connection of a client that cancels calls in
  // masses.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> BoundReplies();

  struct Parts;

 private:
  const std::shared_ptr<Parts> parts_;
};

}  // namespace chainfleet
