// The client of a call, for budgets, refusals and logs.
#pragma once

#include <grpc/grpc_security_constants.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "core/wire/forwarded_peer.h"

namespace chainfleet {

// The peer of a call, or the peer that the server's own HTTP port forwards. Only calls within the process have no
// transport, so a client cannot name another peer.
inline std::string PeerOf(const grpc::ServerContextBase& context) {
  const auto forwarded = context.client_metadata().find(kForwardedPeerHeader);
  if (forwarded == context.client_metadata().end() ||
      !context.auth_context()->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME).empty()) {
    return context.peer();
  }
  return {forwarded->second.data(), forwarded->second.size()};
}

}  // namespace chainfleet
