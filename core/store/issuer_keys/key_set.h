// The public keys of an OpenID Connect issuer, from its JSON Web Key Set (RFC 7517).
#pragma once

#include <openssl/evp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/store/issuer_keys/web_token.h"

namespace chainfleet {

enum class SignatureCheck { kValid, kInvalid, kUnknownKey };

// Immutable, so thread-safe.
class KeySet {
 public:
  // Takes RSA keys of 2048 to 8192 bits for RS256, P-256 for ES256 and Ed25519 for EdDSA. Ignores other keys and those
  // that are not for signatures. INVALID_ARGUMENT: no JWKS, or one without a usable key.
  static absl::StatusOr<KeySet> Parse(const std::string& jwks);

  // A key verifies only its own algorithm. A token without a key's id may be by any key.
  SignatureCheck Check(const WebToken& token) const;

 private:
  struct Key {
    std::string id, algorithm;
    std::shared_ptr<EVP_PKEY> handle;
  };
  std::vector<Key> keys_;
};

// Returns the content of a file or of an http:// or https:// address.
using ReadPlace = std::function<absl::StatusOr<std::string>(const std::string& place)>;

// Reads the keys at `place`; if that is empty, where the issuer's openid-configuration says. Errors of `read`;
// INVALID_ARGUMENT naming the place.
absl::StatusOr<KeySet> ReadKeySet(const std::string& issuer, const std::string& place, const ReadPlace& read);

}  // namespace chainfleet
