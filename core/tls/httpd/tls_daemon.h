// TLS of an HTTP daemon, by GnuTLS below libmicrohttpd.
#pragma once

#include <gnutls/gnutls.h>
#include <microhttpd.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

// The files are read for each connection, so that replaced ones take effect at once and open connections stay. While
// the file of the authorities is wrong, the former authorities stay in use.
class TlsDaemon {
 public:
  explicit TlsDaemon(const TlsFiles& files) : files_(files) {}

  // Reads the authorities. Errors of reading the file; INVALID_ARGUMENT: it holds no certificates.
  absl::Status Prepare();

  // The flags and options to start the daemon with; none for plaintext. This object outlives the daemon.
  unsigned flags() const { return files_.certificate.empty() ? 0 : MHD_USE_TLS; }
  std::vector<MHD_OptionItem> Options();
  // Called by the daemon's thread when a connection starts, before its handshake, and when it is closed. Does nothing
  // for plaintext.
  void OnConnection(MHD_Connection* connection, MHD_ConnectionNotificationCode code);

 private:
  using Authorities = std::shared_ptr<gnutls_certificate_credentials_st>;

  // Takes the file of the authorities if it has changed.
  absl::Status ReadAuthorities();
  // Logs an error once, not for each connection.
  void ReadAuthoritiesAgain();

  const TlsFiles files_;
  std::string pem_;                              // text of the file in use
  std::string refused_;                          // last text that was not taken
  Authorities authorities_;                      // null: clients need no certificate
  std::string error_;                            // the last reading's; empty: none
  std::map<MHD_Connection*, Authorities> used_;  // GnuTLS needs them until the connection is closed
};

}  // namespace chainfleet
