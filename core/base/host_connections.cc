#include "core/base/host_connections.h"

#include "core/base/peer_name.h"

namespace chainfleet {

bool HostConnections::HasRoom(const std::string& peer) const {
  const auto host = open_.find(HostOf(peer));
  return host == open_.end() || host->second < most_;
}

void HostConnections::Add(const std::string& peer) { ++open_[HostOf(peer)]; }

void HostConnections::Remove(const std::string& peer) {
  const auto host = open_.find(HostOf(peer));
  if (host != open_.end() && --host->second == 0) open_.erase(host);
}

}  // namespace chainfleet
