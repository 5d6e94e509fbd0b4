#include "server/rpc/auth.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/ids.h"
#include "core/store/state_store/state_change.h"

namespace chainfleet {
namespace {

// In constant time: the answer must not tell how much of a guess was right.
bool SameSecret(const grpc::string_ref& given, const std::string& wanted) {
  if (given.size() != wanted.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    difference |= static_cast<unsigned char>(given.data()[i]) ^ static_cast<unsigned char>(wanted[i]);
  }
  return difference == 0;
}

}  // namespace

absl::StatusOr<TokenTable> ParseTokens(const std::string& text) {
  TokenTable tenants;
  int number = 0;
  for (const auto& line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    const auto bad = [&](const std::string& what) {
      return absl::InvalidArgumentError(absl::StrCat("tokens, line ", number, ": ", what));
    };
    if (words.size() > 2) return bad("give TOKEN, or TOKEN TENANT");
    const std::string tenant = words.size() == 2 ? words[1] : kDefaultTenant;
    if (const absl::Status name = CheckName("tenant", tenant); !name.ok()) return bad(std::string(name.message()));
    if (!tenants.emplace(words[0], tenant).second) return bad("this token was given before");
  }
  return tenants;
}

// All are looked at: the time taken must not tell which was near.
absl::StatusOr<std::string> Authenticator::TenantOf(const grpc::CallbackServerContext& context) const {
  if (ending_) return absl::UnavailableError("the server is ending: repeat the call");
  if (tenants_.empty()) return std::string(kDefaultTenant);
  const std::string* tenant = nullptr;
  const auto range = context.client_metadata().equal_range("authorization");
  for (auto it = range.first; it != range.second; ++it) {
    for (const auto& [token, owner] : tenants_) {
      if (SameSecret(it->second, "Bearer " + token)) tenant = &owner;
    }
  }
  if (tenant != nullptr) return *tenant;
  return WithReason(
      absl::UnauthenticatedError("this server wants a token: set CHAINFLEET_TOKEN or CHAINFLEET_TOKEN_FILE"),
      "UNAUTHENTICATED");
}

}  // namespace chainfleet
