#include "server/rpc/refused_peers.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/peer_name.h"
#include "server/rpc/call_limits.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kRefusalLogInterval = absl::Seconds(10);

}  // namespace

absl::Duration RefusedPeers::Refuse(const std::string& peer, absl::Duration now, const std::vector<LogField>& details) {
  const std::string host = HostOf(peer);
  int count = 0;
  double refusals = 0;
  std::optional<int64_t> left_out;
  {
    const MutexLock lock(&mutex_);
    if (hosts_.size() >= limits::kRefusedPeers && !hosts_.contains(host)) Forget();
    Host& known = hosts_.try_emplace(host, Host{.at = now}).first->second;
    known.refusals = std::max(known.refusals - absl::ToDoubleSeconds(now - known.at), 0.0) + 1;
    known.at = now;
    refusals = known.refusals;
    ++known.unlogged;
    if (now - known.logged >= kRefusalLogInterval) left_out = lines_.Take({}, now);
    if (left_out) {
      known.logged = now;
      count = std::exchange(known.unlogged, 0);
    }
  }
  if (left_out) {
    std::vector<LogField> fields = {{"peer", host}};
    fields.insert(fields.end(), details.begin(), details.end());
    fields.emplace_back("refusals", count);
    if (*left_out > 0) fields.emplace_back("left_out", *left_out);
    Log(LogLevel::kWarning, event_, fields);
    if (audit_ != nullptr) audit_->Append(fields);
  }
  return std::clamp((refusals - limits::kFreeRefusals) * limits::kRefusalDelay, absl::ZeroDuration(),
                    limits::kMaxRefusalDelay);
}

// Evicts the host whose refusals are the first to be all forgiven, so that a flood from other hosts frees no offender.
void RefusedPeers::Forget() {
  hosts_.erase(std::ranges::min_element(
      hosts_, {}, [](const auto& entry) { return entry.second.at + absl::Seconds(entry.second.refusals); }));
}

OnRefusedPage AuditRefusedPages(AuditLog* audit, const Clock* clock) {
  const auto refused = std::make_shared<RefusedPeers>(audit, "metrics request refused", limits::kSlowLineInterval);
  return [refused, clock](const std::string& peer, const std::string& path) {
    refused->Refuse(peer, clock->Monotonic(), {{"method", "GET " + path}, {"code", "UNAUTHENTICATED"}});
  };
}

}  // namespace chainfleet
