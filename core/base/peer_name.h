// Names of peers and hosts as gRPC writes them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>

namespace chainfleet {

// "ipv4:10.0.0.1:4711", "ipv6:%5B::1%5D:4711". An IPv4 address that was mapped to IPv6 is named as IPv4.
std::string PeerName(const sockaddr* address, socklen_t size);

// Returns the address that `text` writes in numbers; an IPv4 address is mapped to IPv6. nullopt: `text` is anything
// else.
std::optional<in6_addr> ParseIp(const std::string& text);

// Returns the address of a peer, without its zone, as ParseIp does.
std::optional<in6_addr> IpOf(const std::string& peer);

// Returns the host of a peer, for bounds on one host: "ipv4:10.0.0.1" for "ipv4:10.0.0.1:4711". All IPv6 addresses of a
// /64 network are one host ("ipv6:[2001:db8::]/64"), because a client chooses among 2^64 of them. An IPv4 address that
// was mapped to IPv6 is that IPv4 address.
std::string HostOf(const std::string& peer);

}  // namespace chainfleet
