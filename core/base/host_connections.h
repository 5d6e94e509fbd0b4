// Connections to a port, counted for each host.
#pragma once

#include <map>
#include <string>

namespace chainfleet {

// Bounds the connections of one host, as HostOf names it: an IPv4 address, or an IPv6 /64 network. REQUIRES: one thread
// at a time.
class HostConnections {
 public:
  explicit HostConnections(int most) : most_(most) {}

  // `peer` is a PeerName.
  bool HasRoom(const std::string& peer) const;
  void Add(const std::string& peer);
  void Remove(const std::string& peer);  // once for each Add

 private:
  const int most_;
  std::map<std::string, int> open_;  // by host; no zeros
};

}  // namespace chainfleet
