// Makes and signs certificates: what the authorities of TLS and of workers share.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tls/openssl_handles.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

// An authority: its certificate and its private key.
struct Signer {
  CertificateHandle certificate;
  KeyHandle key;
  std::vector<CertificateHandle> trusted = {};  // this authority and earlier ones, whose signatures still count
};

// Reads ca.crt, ca.key and, if it is there, former.crt of `folder`. NOT_FOUND: the folder has no authority.
absl::StatusOr<Signer> OpenAuthority(const std::string& folder);

// Returns a certificate without extensions and signature.
CertificateHandle Blank(const std::string& name, EVP_PKEY* key, const Validity& validity);

// Returns false if OpenSSL cannot read `value`. Without an issuer, the value must not refer to one.
bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value);

// Sets the issuer and signs. False: OpenSSL failed.
bool Sign(X509* certificate, const Signer& authority);

// Returns the authority's signature of a text. Empty: OpenSSL failed.
std::string SignText(const Signer& authority, const std::string& text);

// Returns true if the authority with this certificate signed the text.
bool HasSigned(const X509& authority, const std::string& text, const std::string& signature);

}  // namespace chainfleet
