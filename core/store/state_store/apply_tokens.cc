#include "core/store/state_store/apply_tokens.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/domain/no_such.h"
#include "core/domain/tenant.h"

namespace chainfleet {
namespace {

absl::Status TokenExists(const AccessToken& token) {
  return WithReason(
      absl::AlreadyExistsError(absl::StrCat("token ", TokenId(token.sha256),
                                            " exists with another tenant, role or note: make a new one, or revoke it")),
      "TOKEN_EXISTS");
}

absl::Status TooManyOfTenant(const std::string& tenant, int64_t count) {
  return BoundReached("tenant_tokens",
                      absl::StrCat("tenant ", tenant, " has ", count, " tokens, with expired ones: revoke some first"),
                      "TOO_MANY_TOKENS");
}

// Does not tell a tenant how many tokens others have.
absl::Status TooManyTokens() {
  return BoundReached("tokens", "the fleet has no room for more tokens: an admin of the fleet must revoke some first",
                      "TOO_MANY_TOKENS");
}

absl::Status UsedUp(const AccessToken& token) {
  return BoundReached(
      "token_uses",
      absl::StrCat("token ", TokenId(token.sha256), " was made for ", token.max_uses,
                   " joins of workers, and all were made: an admin makes another by `chainfleet token create`"),
      "TOKEN_USED_UP");
}

}  // namespace

absl::StatusOr<ApplyResult> ApplyPart(const change::AddToken& c, absl::Time wall, StateRows* rows) {
  ApplyResult result;
  result.token = c.token;
  result.token->created_at = wall;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<AccessToken> known, rows->FindToken(c.token.sha256));
  if (known) {
    result.token->created_at = known->created_at;
    result.token->expires_at = known->expires_at;  // a repeated call computes it anew
    result.token->uses = known->uses;
    if (result.token != known) return Refused(TokenExists(c.token));
    result.replayed = true;
    return result;
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t theirs, rows->CountTokens(c.token.tenant));
  const bool is_fleets = c.token.tenant == kDefaultTenant || c.token.tenant == kEveryTenant;
  if (!is_fleets && theirs >= limits::kMaxTenantTokens) return Refused(TooManyOfTenant(c.token.tenant, theirs));
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t count, rows->CountTokens(std::nullopt));
  if (count >= limits::kMaxTokens) return Refused(TooManyTokens());
  CHAINFLEET_RETURN_IF_ERROR(rows->InsertToken(*result.token));
  return result;
}

absl::StatusOr<ApplyResult> ApplyPart(const change::RevokeToken& c, StateRows* rows) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<AccessToken> known, rows->FindToken(c.sha256));
  if (!known) return Refused(NoSuch("token", TokenId(c.sha256)));
  CHAINFLEET_RETURN_IF_ERROR(rows->DeleteToken(c.sha256));
  return ApplyResult();
}

absl::StatusOr<ApplyResult> ApplyPart(const change::UseToken& c, StateRows* rows) {
  ApplyResult result;
  CHAINFLEET_ASSIGN_OR_RETURN(result.token, rows->FindToken(c.sha256));
  if (!result.token) return Refused(NoSuch("token", TokenId(c.sha256)));
  if (++result.token->uses > result.token->max_uses) return Refused(UsedUp(*result.token));
  CHAINFLEET_RETURN_IF_ERROR(rows->DeleteToken(c.sha256));
  CHAINFLEET_RETURN_IF_ERROR(rows->InsertToken(*result.token));
  return result;
}

}  // namespace chainfleet
