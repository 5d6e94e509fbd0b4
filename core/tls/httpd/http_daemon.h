// The start of a libmicrohttpd daemon, for the HTTP port and for pages of metrics.
#pragma once

#include <microhttpd.h>

#include <cstddef>
#include <string>

#include "core/base/host_port.h"
#include "core/base/status.h"
#include "core/tls/httpd/tls_daemon.h"

namespace chainfleet {

struct HttpDaemonBounds {
  unsigned connections = 0;  // beyond them, the daemon accepts none until one is closed
  unsigned silence = 0;      // seconds without a byte, while no reply is due; a TLS handshake has no more in all
  size_t header_bytes = 0;   // buffers of a connection: request line and headers
};

// Called in the daemon's thread, with the `self` of StartHttpDaemon.
struct HttpDaemonCallbacks {
  MHD_AcceptPolicyCallback may_connect;
  MHD_NotifyConnectionCallback on_connection;
  MHD_AccessHandlerCallback on_request;
  MHD_RequestCompletedCallback on_completed;
};

// Serves `address` from one thread; of a name with several addresses, an IPv4 one if there is one. Paths stay
// percent-encoded, and connections may be suspended. `tls` and `self` outlive the daemon. ALREADY_EXISTS / PORT_TAKEN;
// errors of TlsDaemon::Prepare.
absl::StatusOr<MHD_Daemon*> StartHttpDaemon(const HostPort& address, const HttpDaemonBounds& bounds, TlsDaemon* tls,
                                            const HttpDaemonCallbacks& callbacks, void* self);

int PortOf(MHD_Daemon* daemon);

// Returns the PeerName of the client.
std::string PeerOf(MHD_Connection* connection);

}  // namespace chainfleet
