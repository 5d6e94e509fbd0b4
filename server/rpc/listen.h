// A gRPC server on a port, with the bounds that every server of this program shares.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/tls/tls_files.h"
#include "server/rpc/front_door.h"

namespace chainfleet {

struct ListeningServer {
  std::unique_ptr<FrontDoor> door;  // null for unix: addresses
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

// Builds `builder`, to which the services were added, and listens. `clock` outlives the server. `listening` has the
// door before the first call arrives. ALREADY_EXISTS / PORT_TAKEN.
absl::Status Listen(const Endpoint& endpoint, const Clock* clock, grpc::ServerBuilder* builder,
                    ListeningServer* listening);

// A channel to the server that no network carries. No call may begin after its shutdown: gRPC 1.51 would
// crash.
std::shared_ptr<grpc::Channel> InProcessChannelTo(const ListeningServer& listening);

// Refuses new calls, cancels those still open after `patience`, and returns when all have ended.
void ShutDown(ListeningServer* listening, absl::Duration patience);

}  // namespace chainfleet
