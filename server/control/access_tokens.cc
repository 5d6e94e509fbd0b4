#include "server/control/access_tokens.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "core/base/ids.h"
#include "core/domain/no_such.h"
#include "core/domain/tenant.h"
#include "server/control/page_token.h"

namespace chainfleet {
namespace {

constexpr size_t kSha256Digits = 64, kIdDigits = 12, kLongestNote = 200;

}  // namespace

absl::Status CheckToken(const AccessToken& token) {
  std::vector<FieldViolation> wrong;
  const bool is_hex = std::ranges::all_of(
      token.sha256, [](unsigned char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); });
  if (token.sha256.size() != kSha256Digits || !is_hex) {
    wrong.push_back({"sha256", "give the 64 lower-case hex digits of the token's SHA-256"});
  }
  const bool is_text = std::ranges::none_of(token.note, [](unsigned char c) { return absl::ascii_iscntrl(c); });
  if (token.note.size() > kLongestNote || !is_text) {
    wrong.push_back({"note", "give up to 200 bytes of text in one line"});
  }
  const bool writes = token.role == Role::kWriter || token.role == Role::kOperator || token.role == Role::kAdmin;
  if (token.puts_models && !writes) {
    wrong.push_back({"puts_models", "is for writers, operators and admins"});
  }
  if (token.max_uses < 0 || (token.max_uses > 0 && token.role != Role::kWorker)) {
    wrong.push_back({"max_uses", "is for workers: give 1 or more, or 0 for any number"});
  }
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(wrong));
  if (token.role == Role::kWorker && token.tenant == kEveryTenant) return absl::OkStatus();
  return CheckName("tenant", token.tenant, "tenant");
}

AccessTokens::AccessTokens(Executor* executor, StateWriter* writer, const StoredState& state)
    : executor_(executor), writer_(writer) {
  MutexLock lock(&table_->mutex);
  for (const AccessToken& token : state.tokens) table_->by_sha256[token.sha256] = token;
}

void AccessTokens::Add(const AccessToken& token, const Reply<AccessToken>& done) {
  writer_->Write<AccessToken>(change::AddToken{token}, done, [table = table_](const ApplyResult& result) {
    MutexLock lock(&table->mutex);
    // A repeated call may end after a call that revoked the token.
    if (!result.replayed) table->by_sha256[result.token->sha256] = *result.token;
    return *result.token;
  });
}

void AccessTokens::Revoke(const std::string& id, const std::optional<std::string>& tenant, const Reply<bool>& done) {
  const std::optional<AccessToken> token = Find(id, tenant);  // copies no token of another tenant, which takes time
  if (!token) return Send<bool>(executor_, done, NoSuch("token", id));
  writer_->Write<bool>(change::RevokeToken{token->sha256}, done,
                       [table = table_, sha256 = token->sha256](const ApplyResult&) {
                         MutexLock lock(&table->mutex);
                         table->counted.erase(sha256);
                         return table->by_sha256.erase(sha256) > 0;
                       });
}

void AccessTokens::Use(const std::string& id, const std::string& process, const Reply<bool>& done) {
  const std::optional<AccessToken> token = Find(id);
  if (!token || token->max_uses == 0) return Send<bool>(executor_, done, true);
  const std::string& sha256 = token->sha256;
  bool is_new = false, is_stored = false;
  {
    MutexLock lock(&table_->mutex);
    const auto [use, inserted] = table_->counted[sha256].try_emplace(process, false);
    is_new = inserted;
    is_stored = use->second;
  }
  if (is_stored) return Send<bool>(executor_, done, true);
  if (!is_new) return Send<bool>(executor_, done, absl::UnavailableError("the worker's join is being counted"));
  writer_->Write(change::UseToken{sha256},
                 [executor = executor_, table = table_, sha256, process, done](const ApplyResult& result) {
                   {
                     MutexLock lock(&table->mutex);
                     const auto found = table->by_sha256.find(sha256);
                     if (result.status.ok()) {
                       table->counted[sha256][process] = true;
                     } else {
                       table->counted[sha256].erase(process);
                     }
                     if (result.token && found != table->by_sha256.end()) found->second = *result.token;
                   }
                   Send<bool>(executor, done, result.status.ok() ? absl::StatusOr<bool>(true) : result.status);
                 });
}

std::optional<AccessToken> AccessTokens::Find(const std::string& begin,
                                              const std::optional<std::string>& tenant) const {
  MutexLock lock(&table_->mutex);
  const auto found = table_->by_sha256.lower_bound(begin);
  const bool is_it = found != table_->by_sha256.end() && begin.size() >= kIdDigits && found->first.starts_with(begin) &&
                     (!tenant || found->second.tenant == *tenant);
  return is_it ? std::optional(found->second) : std::nullopt;
}

absl::StatusOr<Page<AccessToken>> AccessTokens::List(const std::optional<std::string>& tenant, int32_t page_size,
                                                     const std::string& page_token) const {
  const std::string arguments = "tokens";
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string after, CursorOf(arguments, page_token));
  const auto size = static_cast<size_t>(ClampPageSize(page_size));
  Page<AccessToken> page;
  MutexLock lock(&table_->mutex);
  for (auto i = table_->by_sha256.upper_bound(after); i != table_->by_sha256.end(); ++i) {
    if (tenant && i->second.tenant != *tenant) continue;
    if (page.items.size() == size) {
      page.next_page_token = MakePageToken(arguments, page.items.back().sha256);
      break;
    }
    page.items.push_back(i->second);
  }
  return page;
}

bool AccessTokens::HasAdminOf(const std::string& tenant, absl::Time now) const {
  MutexLock lock(&table_->mutex);
  return std::ranges::any_of(table_->by_sha256, [&](const auto& entry) {
    const AccessToken& token = entry.second;
    return token.role == Role::kAdmin && token.tenant == tenant && now < token.expires_at;
  });
}

bool AccessTokens::empty() const {
  MutexLock lock(&table_->mutex);
  return table_->by_sha256.empty();
}

}  // namespace chainfleet
