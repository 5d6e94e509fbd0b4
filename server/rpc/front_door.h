// The listening sockets of a gRPC server. gRPC 1.51 accepts any number of connections, and stops listening for good
// after one accept that finds no free descriptor. The server therefore accepts connections itself.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

struct DoorLimits {
  int connections = 0;     // at a time
  int of_a_host = 0;       // connections from one address, or one /64 of IPv6
  int silent = 0;          // connections without HTTP/2 preface
  absl::Duration silence;  // after which a silent connection is closed
};

// As many connections as the process has descriptors for, minus a reserve for files and stores.
DoorLimits DoorLimitsOfProcess();

// Hands a connection to gRPC when its first bytes are the HTTP/2 preface, or those of a TLS handshake. If too many
// connections are silent, the host with the most of them loses its oldest one, so silent connections never keep others
// out.
class FrontDoor {
 public:
  // ALREADY_EXISTS: the port is taken, or the address is not one of this host. `clock` outlives the door.
  static absl::StatusOr<std::unique_ptr<FrontDoor>> Open(const Endpoint& endpoint, const DoorLimits& limits,
                                                         const Clock* clock);
  ~FrontDoor();

  int port() const;
  // Begins to accept connections. Called once, when the server of `acceptor` serves.
  void Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor);
  // Frees the port. Connections that gRPC has already stay open.
  void Close();
  // Both take a gRPC peer such as "ipv4:10.0.0.1:4711"; any thread. Cut ends the peer's connection if it is open.
  void Cut(const std::string& peer);
  int64_t BytesReceived(const std::string& peer);  // since the connection was accepted; 0 if it is closed

 private:
  class Connections;
  explicit FrontDoor(std::unique_ptr<Connections> connections);

  const std::unique_ptr<Connections> connections_;
  std::unique_ptr<ThreadPool> thread_;
};

}  // namespace chainfleet
