// Admission of calls to all services: first headers and token, then room for the request, then the request itself.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <functional>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/store/audit_log/audit_log.h"
#include "server/rpc/auth.h"
#include "server/rpc/bytes_in_flight.h"
#include "server/rpc/front_door.h"
#include "server/telemetry/server_metrics.h"

namespace chainfleet {

// gRPC reads the whole request of a unary call before it calls the service. A guarded service is called as soon as the
// headers have arrived. Until the gate admits the call, the HTTP/2 window of its stream holds the client back.
class CallGate {
 public:
  // All arguments outlive the gate, and the gate outlives the server. `door` returns the FrontDoor of the server's
  // connections, null until the server has one; any thread calls it. `audit` may be null.
  CallGate(const Clock* clock, Executor* executor, const Authenticator* auth, ServerMetrics* metrics, AuditLog* audit,
           std::function<FrontDoor*()> door);
  ~CallGate();

  // Returns the service to register instead of `service`, a callback service that outlives it. `name` is the full proto
  // name of the service. A call is refused
  // - without a known token: UNAUTHENTICATED, before a byte of the request is read, and ever more slowly for a host
  //   that repeats it;
  // - if its request is compressed (UNIMPLEMENTED), does not arrive in time (DEADLINE_EXCEEDED) or is not a message of
  //   the method (INVALID_ARGUMENT);
  // - if there is no room for its request: RESOURCE_EXHAUSTED / QUEUE_FULL.
  // The service has at most limits::kTenantTurns reads of a tenant at a time, as many changes, and as many reads of
  // rows. Predictions, probes, streams and calls of workers take no turns.
  std::unique_ptr<grpc::Service> Guard(grpc::Service* service, const std::string& name);

  // The first interceptor of the server: it bounds replies and cuts the connection of a client that cancels too many
  // calls.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> BoundReplies();

  // Gives the turn of a call to the next one. A service calls this before it waits long for something that has its own
  // bound. REQUIRES: the call is being served.
  void EndTurn(const grpc::ServerContextBase& call);

  // The budget of requests and replies, for streams, which bound themselves.
  BytesInFlight* bytes();

  struct Parts;

 private:
  const std::shared_ptr<Parts> parts_;
};

}  // namespace chainfleet
