// Certificates of workers: which process the server let in, for whom, and by which key it signs.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/tls/signing.h"

namespace chainfleet {

// The facts that the server vouches for. None of them has a "/".
struct WorkerClaims {
  std::string worker, incarnation;   // the process; its incarnation is IncarnationOf its key
  std::string tenant;                // the only tenant whose chains it may hold; kEveryTenant: any
  std::string token;                 // id of the token by which it joined; empty on a server without tokens
  bool signs_resume_points = false;  // it signs all that it commits; workers of release 0.1 sign their draws only
  bool operator==(const WorkerClaims&) const = default;
};

// The private key of one process (Ed25519), which never leaves it. Thread-safe.
class SigningKey {
 public:
  SigningKey();
  ~SigningKey();
  SigningKey(const SigningKey&) = delete;
  SigningKey& operator=(const SigningKey&) = delete;
  const std::string& public_key() const { return public_key_; }  // 32 bytes
  std::string Sign(const std::string& text) const;               // 64 bytes
 private:
  std::string public_key_;
  std::array<unsigned char, 64> secret_;  // libsodium's form: the seed and the public key
};

// The name of the process that has this key: 128 bits of the key's SHA-256 in hex. So nobody without the key can be
// this process, although everybody may know its name.
std::string IncarnationOf(const std::string& public_key);

// Returns true if the owner of `public_key` signed the text.
bool IsSignedBy(const std::string& public_key, const std::string& text, const std::string& signature);

// Thread-safe.
class WorkerCertificate {
 public:
  // Returns the DER of a certificate for the owner of `public_key`. INVALID_ARGUMENT: that is no key.
  static absl::StatusOr<std::string> Issue(const Signer& authority, const WorkerClaims& claims,
                                           const std::string& public_key, const Validity& validity);

  // UNAUTHENTICATED: `der` is no certificate of a worker, or another authority signed it. An expired one passes.
  static absl::StatusOr<WorkerCertificate> Read(const std::string& der, const X509& authority);

  // The DER in base64.
  const std::string& base64() const { return base64_; }
  const WorkerClaims& claims() const { return claims_; }
  const Validity& validity() const { return validity_; }
  bool HasSigned(const std::string& text, const std::string& signature) const;

 private:
  WorkerCertificate() = default;
  std::string base64_, public_key_;
  WorkerClaims claims_;
  Validity validity_;
};

}  // namespace chainfleet
