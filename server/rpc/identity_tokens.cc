#include "server/rpc/identity_tokens.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/escaped.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/utf8.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kLeeway = absl::Seconds(60);  // between the issuer's clock and ours
constexpr absl::Duration kKeysLife = absl::Minutes(5), kLeastBetweenReads = absl::Seconds(30);
constexpr size_t kMostKnown = 4096, kLongestSubject = 100;
constexpr std::string_view kArrow = " -> ";
constexpr char kSubjectUrl[] = "chainfleet/subject";

absl::Status Refused(const std::string& why) {
  return WithReason(absl::UnauthenticatedError(absl::StrCat("the JWT ", why)), "UNAUTHENTICATED");
}

// The caller by the first rule that matches.
absl::StatusOr<Principal> Match(const std::vector<IdentityRule>& rules, const WebToken& token) {
  // No token of ours has such an id.
  const std::string id =
      absl::StrCat(kJwtPrincipal, std::string(WholeCharacters(Escaped(token.subject), kLongestSubject)));
  const auto refused = [&](const std::string& why) {
    absl::Status status =
        absl::PermissionDeniedError(absl::StrCat("the JWT of ", token.issuer, " is valid, but ", why));
    status.SetPayload(kSubjectUrl, absl::Cord(id));
    return WithReason(std::move(status), "NOT_ALLOWED");
  };
  for (const IdentityRule& rule : rules) {
    if (!token.Has(rule.claim, rule.value)) continue;
    Principal caller = rule.principal;
    caller.id = id;
    caller.expires_at = token.expires_at;
    if (rule.tenant_claim.empty()) return caller;
    const auto [begin, end] = token.claims.equal_range(rule.tenant_claim);
    if (begin == end || std::next(begin) != end || !CheckName("tenant", begin->second).ok()) {
      return refused(absl::StrCat("its claim ", rule.tenant_claim, " does not name one tenant"));
    }
    caller.tenant = begin->second;
    if (caller.tenant == kDefaultTenant && caller.may(kOperate)) {
      return refused(
          absl::StrCat("its claim ", rule.tenant_claim, " names the tenant ", kDefaultTenant,
                       ", whose operators and admins are the fleet's: these need a rule that names no claim"));
    }
    return caller;
  }
  return refused("no --oidc-rule of the server matches its claims");
}

}  // namespace

std::string RefusedSubject(const absl::Status& status) {
  const auto id = status.GetPayload(kSubjectUrl);
  return id.has_value() ? std::string(*id) : std::string();
}

absl::StatusOr<IdentityRule> ParseIdentityRule(const std::string& text) {
  const std::vector<std::string> sides = absl::StrSplit(text, std::string(kArrow));
  const std::vector<std::string> claim = absl::StrSplit(sides[0], absl::MaxSplits('=', 1));
  if (sides.size() != 2 || claim.size() != 2 || claim[0].empty() || claim[1].empty()) {
    return absl::InvalidArgumentError("give CLAIM=VALUE -> [TENANT] [ROLE] [models]");
  }
  IdentityRule rule{.claim = claim[0], .value = claim[1]};
  std::string rights = sides[1];
  const size_t open = rights.find('{'), close = rights.find('}');
  if (open != std::string::npos && close != std::string::npos && close > open + 1) {
    rule.tenant_claim = rights.substr(open + 1, close - open - 1);
    rights.replace(open, close - open + 1, "claimed");  // so there is no second tenant, and no right of the fleet
  }
  CHAINFLEET_ASSIGN_OR_RETURN(rule.principal, ParseRights(rights));
  if (rule.principal.may(kJoin)) return absl::InvalidArgumentError("workers join by tokens of this server, not by JWT");
  return rule;
}

struct IdentityTokens::State {
  State(IdentityOptions given, ReadPlace read_place, const Clock* the_clock)
      : options(std::move(given)), read(std::move(read_place)), clock(the_clock) {}

  absl::Status ReadKeys() {
    absl::StatusOr<KeySet> found = ReadKeySet(options.issuer, options.keys, read);
    MutexLock lock(&mutex);
    reading = false;
    read_at = clock->Monotonic();
    if (!found.ok()) return found.status();
    keys = std::make_shared<const KeySet>(*std::move(found));
    verified.clear();  // a key may have been withdrawn
    return absl::OkStatus();
  }

  // True if a task has to read the keys, because they were not read for `age`.
  bool ShouldRead(absl::Duration age) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (reading || clock->Monotonic() - read_at < age) return false;
    return reading = true;
  }

  absl::Status CheckClaims(const WebToken& token, absl::Time now) const {
    if (token.issuer != options.issuer) return Refused("is not by the issuer that this server trusts");
    if (!token.Has("aud", options.audience)) return Refused(absl::StrCat("is not for audience ", options.audience));
    if (now >= token.expires_at + kLeeway) return Refused("has expired: get another one from its issuer");
    if (now < token.not_before - kLeeway) return Refused("is not valid yet: compare the clocks of issuer and server");
    return absl::OkStatus();
  }

  struct Verified {
    Principal caller;
    absl::Time until;
  };
  const IdentityOptions options;
  const ReadPlace read;
  const Clock* const clock;
  Mutex mutex;
  std::shared_ptr<const KeySet> keys CHAINFLEET_GUARDED_BY(mutex);  // null: not read yet
  absl::Duration read_at CHAINFLEET_GUARDED_BY(mutex) = -absl::InfiniteDuration();
  bool reading CHAINFLEET_GUARDED_BY(mutex) = false;
  // By the SHA-256 of the token. Cleared when full.
  std::unordered_map<std::string, Verified> verified CHAINFLEET_GUARDED_BY(mutex);
};

IdentityTokens::IdentityTokens(IdentityOptions options, ReadPlace read, const Clock* clock, Executor* executor)
    : state_(std::make_shared<State>(std::move(options), std::move(read), clock)), executor_(executor) {}

absl::Status IdentityTokens::ReadKeys() { return state_->ReadKeys(); }

bool IdentityTokens::HasRuleFor(unsigned rights) const {
  return std::ranges::any_of(state_->options.rules, [&](const auto& rule) { return rule.principal.may(rights); });
}

void IdentityTokens::ReadSoon() const {
  executor_->Schedule([state = state_] {
    const absl::Status read = state->ReadKeys();
    if (!read.ok()) Log(LogLevel::kWarning, "cannot read the issuer's keys", {{"error", read.message()}});
  });
}

absl::StatusOr<Principal> IdentityTokens::Find(const std::string& text) const {
  const std::string key = Sha256Hex(text);
  const absl::Time now = state_->clock->Wall();
  std::shared_ptr<const KeySet> keys;
  {
    MutexLock lock(&state_->mutex);
    if (state_->ShouldRead(kKeysLife)) ReadSoon();
    const auto found = state_->verified.find(key);
    if (found != state_->verified.end() && now < found->second.until) return found->second.caller;
    keys = state_->keys;
  }
  const absl::StatusOr<WebToken> token = ParseWebToken(text);
  if (!token.ok()) return WithReason(absl::UnauthenticatedError(token.status().message()), "UNAUTHENTICATED");
  CHAINFLEET_RETURN_IF_ERROR(state_->CheckClaims(*token, now));
  const SignatureCheck check = keys == nullptr ? SignatureCheck::kUnknownKey : keys->Check(*token);
  if (check == SignatureCheck::kInvalid) return Refused("has no valid signature of its issuer's key");
  if (check == SignatureCheck::kUnknownKey) return RefuseKey();
  CHAINFLEET_ASSIGN_OR_RETURN(Principal caller, Match(state_->options.rules, *token));
  MutexLock lock(&state_->mutex);
  if (keys != state_->keys) return caller;  // the keys were read meanwhile: check this token again
  if (state_->verified.size() >= kMostKnown) state_->verified.clear();
  state_->verified.insert_or_assign(key, State::Verified{caller, token->expires_at + kLeeway});
  return caller;
}

// The issuer may have a new key, which the next reading finds.
absl::Status IdentityTokens::RefuseKey() const {
  MutexLock lock(&state_->mutex);
  if (state_->ShouldRead(kLeastBetweenReads)) ReadSoon();
  if (state_->reading || state_->keys == nullptr) {
    return absl::UnavailableError("the server has not read the issuer's keys yet: repeat the call");
  }
  return Refused("is signed by a key that its issuer did not publish");
}

}  // namespace chainfleet
