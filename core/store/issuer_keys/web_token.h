// JSON Web Tokens (RFC 7519) in the compact form of signed tokens. They come from strangers.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "core/base/status.h"

namespace chainfleet {

struct WebToken {
  std::string algorithm, key_id;       // "alg" and "kid" of the header; key_id may be empty
  std::string signed_text, signature;  // the signature is over this text
  std::string issuer, subject;
  absl::Time not_before = absl::InfinitePast(), expires_at;
  // The claims that are texts or lists of texts. A claim within an object has a dotted name: realm_access.roles.
  std::multimap<std::string, std::string> claims;

  bool Has(const std::string& claim, std::string_view value) const;
};

// Checks the form, not the signature. INVALID_ARGUMENT; the message has no part of the token. Refuses tokens that are
// longer than 8 KiB, lack iss, sub or exp, have a time before 1970 or after 9999, give a name twice, have critical
// headers or are no ID or access token.
absl::StatusOr<WebToken> ParseWebToken(const std::string& text);

}  // namespace chainfleet
