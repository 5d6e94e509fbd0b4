#include "server/rpc/worker_claims.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/host_port.h"
#include "core/base/peer_name.h"

namespace chainfleet {
namespace {

constexpr size_t kLongestName = 253;  // longest host name in DNS
constexpr size_t kLongestReason = 64 * 1024;
constexpr int kMostDevices = 64, kMostChains = 16384;

bool IsName(std::string_view text) {
  return text.size() <= kLongestName && std::ranges::all_of(text, [](unsigned char c) {
           return absl::ascii_isalnum(c) ||
                  std::string_view("._:@-[]").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

bool IsHostPort(const std::string& text) {
  const absl::StatusOr<HostPort> address = ParseHostPort(text);
  return IsName(text) && address.ok() && address->port > 0;
}

// True for an address that only the own network link reaches, such as a cloud's metadata service. Prometheus asks every
// address of /sd, so a worker must not name one.
bool IsLinkLocal(const std::string& host_port) {
  const absl::StatusOr<HostPort> address = ParseHostPort(host_port);
  if (!address.ok()) return false;
  const std::optional<in6_addr> ip = ParseIp(absl::StrReplaceAll(address->host, {{"[", ""}, {"]", ""}}));
  if (!ip) return false;
  const uint8_t* const bytes = ip->s6_addr;
  return IN6_IS_ADDR_LINKLOCAL(&*ip) || (IN6_IS_ADDR_V4MAPPED(&*ip) && bytes[12] == 169 && bytes[13] == 254);
}

class Claims {
 public:
  // The error leaves out `text`: it must not reach a terminal.
  void Name(const char* field, const std::string& text) {
    if (IsName(text)) return;
    wrong_.push_back({field, absl::StrCat("has ", text.size(), " bytes: give up to ", kLongestName,
                                          " characters of A-Z, a-z, 0-9 and ._:@-[]")});
  }
  void Address(const char* field, const std::string& text) {
    if (text.empty()) return;
    if (!IsHostPort(text)) wrong_.push_back({field, "is not HOST:PORT"});
    if (IsLinkLocal(text)) wrong_.push_back({field, "is a link-local address: give one that Prometheus reaches"});
  }
  void AtMost(const char* field, size_t count, size_t most) {
    if (count > most) wrong_.push_back({field, absl::StrCat("has ", count, " of at most ", most)});
  }
  absl::Status status() const { return InvalidFields(wrong_); }

 private:
  std::vector<FieldViolation> wrong_;
};

}  // namespace

absl::Status CheckClaims(const v1::JoinRequest& request) {
  Claims claims;
  claims.Name("worker", request.worker());
  claims.Name("incarnation", request.incarnation());
  return claims.status();
}

absl::Status CheckClaims(const v1::SynchronizeRequest& request) {
  Claims claims;
  claims.Name("worker", request.worker());
  claims.Name("incarnation", request.incarnation());
  claims.Name("host", request.host());
  claims.Name("store_incarnation", request.store_incarnation());
  claims.Address("metrics_address", request.metrics_address());
  claims.AtMost("devices", static_cast<size_t>(request.devices_size()), kMostDevices);
  claims.AtMost("chains", static_cast<size_t>(request.chains_size() + request.released_size()), kMostChains);
  for (const auto& device : request.devices()) claims.Name("devices.name", device.name());
  for (const auto& released : request.released())
    claims.AtMost("released.reason", released.reason().size(), kLongestReason);
  return claims.status();
}

absl::Status CheckClaims(const v1::CommitProgressRequest& request) {
  Claims claims;
  claims.Name("worker", request.worker());
  claims.Name("incarnation", request.incarnation());
  claims.Name("host", request.host());
  claims.Name("device_kind", request.device_kind());
  claims.AtMost("reason", request.reason().size(), kLongestReason);
  return claims.status();
}

absl::Status CheckClaims(const v1::ShardUpdate::Hello& hello) {
  Claims claims;
  claims.Name("hello.worker", hello.worker());
  claims.Name("hello.incarnation", hello.incarnation());
  return claims.status();
}

}  // namespace chainfleet
