#include "core/tls/httpd/http_daemon.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/peer_name.h"

namespace chainfleet {
namespace {

// Paths are decoded segment by segment, so that an encoded slash is no separator.
size_t KeepEscapes(void*, MHD_Connection*, char* text) { return std::strlen(text); }

const addrinfo* Preferred(const addrinfo* found) {
  const addrinfo* at = found;
  while (at != nullptr && at->ai_family != AF_INET) at = at->ai_next;
  return at == nullptr ? found : at;
}

absl::Status PortTaken(const HostPort& address) {
  return WithReason(absl::AlreadyExistsError(absl::StrCat("cannot listen on ", address.host, ":", address.port,
                                                          ": the port is taken or the address is not of this host")),
                    "PORT_TAKEN");
}

}  // namespace

absl::StatusOr<MHD_Daemon*> StartHttpDaemon(const HostPort& address, const HttpDaemonBounds& bounds, TlsDaemon* tls,
                                            const HttpDaemonCallbacks& callbacks, void* self) {
  CHAINFLEET_RETURN_IF_ERROR(tls->Prepare());
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string host = address.BareHost();
  if (::getaddrinfo(host.c_str(), std::to_string(address.port).c_str(), &wanted, &found) != 0)
    return PortTaken(address);
  unsigned flags = MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME | tls->flags();
  const addrinfo* const chosen = Preferred(found);
  if (chosen->ai_family == AF_INET6) flags |= MHD_USE_DUAL_STACK;
  MHD_Daemon* const daemon = MHD_start_daemon(
      flags, 0, callbacks.may_connect, self, callbacks.on_request, self, MHD_OPTION_SOCK_ADDR, chosen->ai_addr,
      MHD_OPTION_NOTIFY_CONNECTION, callbacks.on_connection, self, MHD_OPTION_NOTIFY_COMPLETED, callbacks.on_completed,
      self, MHD_OPTION_UNESCAPE_CALLBACK, KeepEscapes, nullptr, MHD_OPTION_CONNECTION_LIMIT, bounds.connections,
      MHD_OPTION_CONNECTION_TIMEOUT, bounds.silence, MHD_OPTION_CONNECTION_MEMORY_LIMIT, bounds.header_bytes,
      MHD_OPTION_ARRAY, tls->Options().data(), MHD_OPTION_END);
  ::freeaddrinfo(found);
  if (daemon == nullptr) return PortTaken(address);
  return daemon;
}

int PortOf(MHD_Daemon* daemon) { return MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port; }

std::string PeerOf(MHD_Connection* connection) {
  const sockaddr* from = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
  const socklen_t bytes = from->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return PeerName(from, bytes);
}

}  // namespace chainfleet
