// The two ends that a call comes from: a connection, and the client whose call a proxy may have passed on.
#pragma once

#include <grpc/grpc_security_constants.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/trusted_proxies.h"
#include "core/wire/forwarded_peer.h"

namespace chainfleet {

// The client of a call, for what is counted by caller, and for logs. REQUIRES: a CallRecord (call_record.h), which
// replaces the client that the metadata name by that of FindClient.
inline std::string ClientPeer(const grpc::ServerContextBase& context) {
  const auto client = context.client_metadata().find(kForwardedPeerHeader);
  if (client == context.client_metadata().end()) return context.peer();
  return {client->second.data(), client->second.size()};
}

// The peer of the connection, for what is counted or closed by connection. In a call of the server's own HTTP port, the
// client that the port names. Only calls within the process have no transport, so no client can name another peer.
inline std::string ConnectionPeer(const grpc::ServerContextBase& context) {
  const bool is_within = context.auth_context()->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME).empty();
  return is_within ? ClientPeer(context) : context.peer();
}

// The client that a call with these metadata is made for.
inline std::string FindClient(const grpc::ServerContextBase& context, const TrustedProxies& proxies) {
  std::string forwarded_for;
  const auto [first, last] = context.client_metadata().equal_range(kForwardedForHeader);
  for (auto line = first; line != last; ++line) {
    absl::StrAppend(&forwarded_for, line == first ? "" : ",",
                    absl::string_view(line->second.data(), line->second.size()));
  }
  return proxies.ClientOf(ConnectionPeer(context), forwarded_for);
}

}  // namespace chainfleet
