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
#include "server/telemetry/server_metrics.h"

namespace chainfleet {

// gRPC reads the whole request of a unary call before it asks the service. A guarded service is asked when the headers
// are there: until the call is let in, the HTTP/2 window of its stream holds the client back.
class CallGate {
 public:
  // All outlive the gate, and the gate outlives the server.
  CallGate(const Clock* clock, Executor* executor, const Authenticator* auth, ServerMetrics* metrics);
  ~CallGate();

  // What a ServerBuilder registers instead of `service`, a callback service that outlives it. `name` is the full name
  // of the service in its proto. Calls are refused
  // - without a token that the server knows: UNAUTHENTICATED, before a byte of the request is read, and slowly for a
  //   host that goes on;
  // - whose request is compressed (UNIMPLEMENTED), is not whole in time (DEADLINE_EXCEEDED) or is no message of the
  //   method (INVALID_ARGUMENT);
  // - without room for their request: RESOURCE_EXHAUSTED / QUEUE_FULL.
  std::unique_ptr<grpc::Service> Guard(grpc::Service* service, const std::string& name);

  // The first interceptor of the server: it bounds replies. `cut` ends the connection of a peer whose client cancels
  // calls in masses; it runs at most once in a while for each.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> BoundReplies(
      std::function<void(const std::string& peer)> cut);

  struct Parts;

 private:
  const std::shared_ptr<Parts> parts_;
};

}  // namespace chainfleet
