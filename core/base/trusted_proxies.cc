#include "core/base/trusted_proxies.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/peer_name.h"

namespace chainfleet {
namespace {

constexpr size_t kMappedBits = 96;  // before the 32 of an IPv4 address that is mapped to IPv6

std::string PeerWithoutPort(const in6_addr& host) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = host;
  const std::string name = PeerName(reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return name.substr(0, name.rfind(':'));
}

}  // namespace

absl::StatusOr<TrustedProxies> TrustedProxies::Parse(const std::vector<std::string>& networks) {
  TrustedProxies proxies;
  for (const std::string& network : networks) {
    const size_t slash = network.find('/');
    const std::optional<in6_addr> address = ParseIp(network.substr(0, slash));
    const size_t before = network.find(':') == std::string::npos ? kMappedBits : 0;
    uint32_t bits = 0;
    if (slash == std::string::npos || !address || !absl::SimpleAtoi(network.substr(slash + 1), &bits) ||
        before + bits > 128) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", network, "\" is no network: give ADDRESS/BITS, as in 10.0.0.7/32 or 2001:db8:0:1::/64"));
    }
    proxies.networks_.push_back({*address, before + bits});
  }
  return proxies;
}

std::string TrustedProxies::ClientOf(const std::string& peer, absl::string_view forwarded_for) const {
  if (networks_.empty() || forwarded_for.empty()) return peer;
  const std::optional<in6_addr> proxy = IpOf(peer);
  if (!proxy || !Trusts(*proxy)) return peer;
  for (int i = 0; i < kMaxForwardings; ++i) {
    const size_t comma = forwarded_for.rfind(',');
    const absl::string_view entry = forwarded_for.substr(comma + 1);  // all of it without a comma: npos + 1 is 0
    const std::optional<in6_addr> address = ParseIp(std::string(absl::StripAsciiWhitespace(entry)));
    if (!address) return peer;
    if (!Trusts(*address)) return PeerWithoutPort(*address);
    if (comma == absl::string_view::npos) return peer;
    forwarded_for = forwarded_for.substr(0, comma);
  }
  return peer;
}

bool TrustedProxies::Trusts(const in6_addr& address) const {
  return std::ranges::any_of(networks_, [&](const Network& network) {
    const size_t bytes = network.bits / 8, rest = network.bits % 8;
    if (std::memcmp(address.s6_addr, network.address.s6_addr, bytes) != 0) return false;
    return rest == 0 || (address.s6_addr[bytes] ^ network.address.s6_addr[bytes]) >> (8 - rest) == 0;
  });
}

}  // namespace chainfleet
