// Metadata of calls that the server makes to itself for a client of its HTTP port.
#pragma once

namespace chainfleet {

// The client's address, as PeerName writes it. Ignored in calls that come over a network.
inline constexpr char kForwardedPeerHeader[] = "x-chainfleet-peer";

}  // namespace chainfleet
