#include "core/base/peer_name.h"

#include <netdb.h>
#include <netinet/in.h>

#include "absl/strings/str_cat.h"

namespace chainfleet {

std::string NumericHost(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST] = "";
  ::getnameinfo(address, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

std::string PeerName(const sockaddr* address, const std::string& host) {
  const auto& six = reinterpret_cast<const sockaddr_in6&>(*address);  // the port has the same place in both
  const int port = ntohs(six.sin6_port);
  if (address->sa_family == AF_INET) return absl::StrCat("ipv4:", host, ":", port);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) return absl::StrCat("ipv4:", host.substr(host.rfind(':') + 1), ":", port);
  return absl::StrCat("ipv6:%5B", host, "%5D:", port);
}

}  // namespace chainfleet
