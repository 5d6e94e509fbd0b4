// Names of peers and hosts as gRPC writes them.
#pragma once

#include <sys/socket.h>

#include <string>

namespace chainfleet {

// The address without its port: "10.0.0.1", "::1".
std::string NumericHost(const sockaddr* address, socklen_t size);

// "ipv4:10.0.0.1:4711", "ipv6:%5B::1%5D:4711". An IPv4 address that was mapped to IPv6 is named as IPv4. `host` is the
// NumericHost of `address`.
std::string PeerName(const sockaddr* address, const std::string& host);

}  // namespace chainfleet
