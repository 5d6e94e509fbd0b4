// Callers by the tokens (JWT) of an OpenID Connect issuer that the server trusts.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/status.h"
#include "core/store/issuer_keys/key_set.h"
#include "server/rpc/auth.h"

namespace chainfleet {

// Callers whose claim has the value get the tenant and the rights of the principal.
struct IdentityRule {
  std::string claim, value;
  std::string tenant_claim;  // has the name of the tenant; empty: principal.tenant
  Principal principal;       // without an id
};

// Reads "CLAIM=VALUE -> [TENANT] [ROLE] [models]", whose right side is that of a line of tokens; TENANT may be {CLAIM}.
// INVALID_ARGUMENT; workers cannot have such tokens.
absl::StatusOr<IdentityRule> ParseIdentityRule(const std::string& text);

struct IdentityOptions {
  std::string issuer, audience;     // as in iss and aud; without an issuer no JWT is taken
  std::string keys;                 // file or address of the JWKS; empty: where the issuer says
  std::string authorities;          // PEM certificates that sign those of the addresses; empty: those of this host
  std::vector<IdentityRule> rules;  // the first that matches decides; if none does, the caller is refused
};

// Returns the id ("oidc:SUBJECT") of the caller whose valid token no rule matches, or "".
std::string RefusedSubject(const absl::Status& status);

// Thread-safe. Never blocks its callers but in ReadKeys.
class IdentityTokens {
 public:
  // `read` runs on the executor; the tasks share what they use, so they may outlive this.
  IdentityTokens(IdentityOptions options, ReadPlace read, const Clock* clock, Executor* executor);

  // Reads the issuer's keys. An error leaves the keys as they are.
  absl::Status ReadKeys();

  // JSON begins so in base64url.
  static bool HasForm(std::string_view token) { return token.starts_with("eyJ"); }

  // True if the callers of a rule have the rights.
  bool HasRuleFor(unsigned rights) const;

  // Returns the caller. UNAUTHENTICATED: malformed, expired, not by the issuer or for another audience.
  // PERMISSION_DENIED / NOT_ALLOWED, with a RefusedSubject: no rule matches. UNAVAILABLE: the key is not known and the
  // keys are being read, at most every 30 s; repeat the call.
  absl::StatusOr<Principal> Find(const std::string& token) const;

 private:
  struct State;
  void ReadSoon() const;
  absl::Status RefuseKey() const;

  const std::shared_ptr<State> state_;
  Executor* const executor_;
};

}  // namespace chainfleet
