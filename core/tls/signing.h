// Makes and signs certificates: what the authorities of TLS and of workers share.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/tls/openssl_handles.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

// An authority: its certificate and its private key.
struct Signer {
  CertificateHandle certificate;
  KeyHandle key;
};

// Reads ca.crt and ca.key of `folder`. NOT_FOUND: the folder has no authority.
absl::StatusOr<Signer> OpenAuthority(const std::string& folder);

// Returns a certificate without extensions and signature.
CertificateHandle Blank(const std::string& name, EVP_PKEY* key, const Validity& validity);

// Returns false if OpenSSL cannot read `value`. Without an issuer, the value must not refer to one.
bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value);

// Sets the issuer and signs. False: OpenSSL failed.
bool Sign(X509* certificate, const Signer& authority);

}  // namespace chainfleet
