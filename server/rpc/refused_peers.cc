#include "server/rpc/refused_peers.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "server/rpc/call_limits.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kRefusalLogInterval = absl::Seconds(10);

}  // namespace

std::string HostOf(const std::string& peer) {
  const size_t colon = peer.rfind(':');
  return peer.starts_with("ipv") && colon > peer.find(':') ? peer.substr(0, colon) : peer;
}

absl::Duration RefusedPeers::Refuse(const std::string& host, absl::Duration now) {
  int count = 0;
  double refusals = 0;
  {
    const MutexLock lock(&mutex_);
    if (hosts_.size() >= limits::kRefusedPeers && !hosts_.contains(host)) Forget(now);
    Host& known = hosts_.try_emplace(host, Host{.at = now}).first->second;
    known.refusals = std::max(known.refusals - absl::ToDoubleSeconds(now - known.at), 0.0) + 1;
    known.at = now;
    refusals = known.refusals;
    ++known.unlogged;
    if (now - known.logged >= kRefusalLogInterval) {
      known.logged = now;
      count = std::exchange(known.unlogged, 0);
    }
  }
  if (count > 0) {
    Log(LogLevel::kWarning, "token refused", {{"peer", host}, {"refusals", count}});
    if (audit_ != nullptr) audit_->Append({{"peer", host}, {"code", "UNAUTHENTICATED"}, {"refusals", count}});
  }
  return std::clamp((refusals - limits::kFreeRefusals) * limits::kRefusalDelay, absl::ZeroDuration(),
                    limits::kMaxRefusalDelay);
}

void RefusedPeers::Forget(absl::Duration now) {
  std::erase_if(hosts_, [now](const auto& entry) { return now - entry.second.at > limits::kMaxRefusalDelay; });
  // Only a flood from thousands of addresses gets here. Evict any host to make room for the newest.
  if (hosts_.size() >= limits::kRefusedPeers) hosts_.erase(hosts_.begin());
}

}  // namespace chainfleet
