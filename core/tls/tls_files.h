// The files of one end of TLS connections: certificates and a private key, all PEM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/tls/openssl_handles.h"

namespace chainfleet {

// Nothing beyond it is read.
inline constexpr int64_t kMaxTlsFileBytes = 4 << 20;

struct TlsFiles {
  std::string certificate;  // own certificate, then those between it and its authority; empty: none
  std::string key;          // private key of `certificate`
  std::string authorities;  // certificates that sign those of peers; empty: none
  bool any() const { return !certificate.empty() || !key.empty() || !authorities.empty(); }
};

// An address to listen on.
struct Endpoint {
  std::string address;  // HOST:PORT; port 0 takes a free one
  TlsFiles tls = {};    // plaintext without a certificate; with authorities, clients need a certificate, too
};

// Returns the files that CHAINFLEET_CA_FILE, CHAINFLEET_CERT_FILE and CHAINFLEET_KEY_FILE name. Calls use TLS if there
// is any. CHAINFLEET_CA_FILE=system means the authorities of this host.
TlsFiles ClientTlsFiles();

// Replaces "system" by the file of this host's authorities.
std::string AuthoritiesFile(const std::string& name);

// Checks that the files can be read and that the key is the certificate's. INVALID_ARGUMENT, NOT_FOUND or
// PERMISSION_DENIED, naming the file.
absl::Status CheckTlsFiles(const TlsFiles& files);

// Reads the first certificate or the private key of a file. Errors as above.
absl::StatusOr<CertificateHandle> ReadCertificate(const std::string& path);
absl::StatusOr<KeyHandle> ReadKey(const std::string& path);

// Reads all certificates of a file. Errors as above. INVALID_ARGUMENT also if a later one is damaged.
absl::StatusOr<std::vector<CertificateHandle>> ReadCertificates(const std::string& path);

// Reads the first certificate of a PEM text. INVALID_ARGUMENT names `source`.
absl::StatusOr<CertificateHandle> ParseCertificate(const std::string& pem, const std::string& source);

// Returns the time at which the first of all certificates in a file expires. Errors as above.
absl::StatusOr<absl::Time> EarliestExpiry(const std::string& path);

// Returns the certificate in PEM form.
std::string PemOf(const X509& certificate);

// Returns the times between which a certificate is valid.
struct Validity {
  absl::Time from, until;
};
Validity ValidityOf(const X509& certificate);

}  // namespace chainfleet
