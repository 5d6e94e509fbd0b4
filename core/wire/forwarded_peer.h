// Metadata that tell whose call a call is.
#pragma once

namespace chainfleet {

// The client's address, as PeerName writes it. The server sets it in the calls that it makes to itself for its HTTP
// port. In calls that come over a network, the server replaces what a client sends (server/rpc/peer.h).
inline constexpr char kForwardedPeerHeader[] = "x-chainfleet-peer";

}  // namespace chainfleet
