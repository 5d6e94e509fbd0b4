// TLS of an HTTP daemon, by GnuTLS below libmicrohttpd.
#pragma once

#include <microhttpd.h>

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

// The certificate and its key are read for each handshake, so that replaced files take effect at once. The authorities
// of clients are read once.
class TlsDaemon {
 public:
  explicit TlsDaemon(const TlsFiles& files) : files_(files) {}

  // Reads the authorities. Errors of reading the file.
  absl::Status Prepare();

  // The flags and options to start the daemon with; none for plaintext. This object outlives the daemon.
  unsigned flags() const { return files_.certificate.empty() ? 0 : MHD_USE_TLS; }
  std::vector<MHD_OptionItem> Options();
  // Called once for each connection, before its handshake. Does nothing for plaintext.
  void PrepareHandshake(MHD_Connection* connection);

 private:
  const TlsFiles files_;
  std::string authorities_;  // PEM
};

}  // namespace chainfleet
