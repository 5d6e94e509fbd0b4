#include "core/base/peer_name.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace chainfleet {

std::string PeerName(const sockaddr* address, socklen_t size) {
  char number[NI_MAXHOST] = "";
  ::getnameinfo(address, size, number, sizeof number, nullptr, 0, NI_NUMERICHOST);
  const std::string host = number;
  const auto& six = reinterpret_cast<const sockaddr_in6&>(*address);  // the port has the same place in both
  const int port = ntohs(six.sin6_port);
  if (address->sa_family == AF_INET) return absl::StrCat("ipv4:", host, ":", port);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) return absl::StrCat("ipv4:", host.substr(host.rfind(':') + 1), ":", port);
  return absl::StrCat("ipv6:%5B", host, "%5D:", port);
}

std::optional<in6_addr> ParseIp(const std::string& text) {
  in6_addr address{};
  if (::inet_pton(AF_INET6, text.c_str(), &address) == 1) return address;
  address = {};
  address.s6_addr[10] = address.s6_addr[11] = 0xff;
  if (::inet_pton(AF_INET, text.c_str(), &address.s6_addr[12]) == 1) return address;
  return std::nullopt;
}

std::optional<in6_addr> IpOf(const std::string& peer) {
  absl::string_view given = peer;
  if (absl::ConsumePrefix(&given, "ipv4:")) return ParseIp(std::string(given.substr(0, given.rfind(':'))));
  if (!absl::ConsumePrefix(&given, "ipv6:")) return std::nullopt;
  if (!absl::ConsumePrefix(&given, "%5B")) absl::ConsumePrefix(&given, "[");
  return ParseIp(std::string(given.substr(0, given.find_first_of("%]"))));  // without a zone
}

std::string HostOf(const std::string& peer) {
  const size_t port = peer.rfind(':');
  const std::string host = peer.starts_with("ipv") && port > peer.find(':') ? peer.substr(0, port) : peer;
  std::optional<in6_addr> address = IpOf(peer);
  if (!address) return host;
  char text[INET6_ADDRSTRLEN] = "";
  if (IN6_IS_ADDR_V4MAPPED(&*address)) {
    return absl::StrCat("ipv4:", ::inet_ntop(AF_INET, &address->s6_addr[12], text, sizeof text));
  }
  std::fill(&address->s6_addr[8], std::end(address->s6_addr), 0);
  return absl::StrCat("ipv6:[", ::inet_ntop(AF_INET6, &*address, text, sizeof text), "]/64");
}

}  // namespace chainfleet
