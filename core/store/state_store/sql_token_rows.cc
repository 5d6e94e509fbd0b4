// The methods of SqlRows for tokens.
#include "core/store/state_store/sql_query.h"
#include "core/store/state_store/sql_rows.h"

namespace chainfleet {

absl::StatusOr<std::optional<AccessToken>> SqlRows::FindToken(const std::string& sha256) {
  return sql::First<AccessToken>(connection_, sql::Select<AccessToken>("tokens WHERE sha256 = ?"), sha256);
}

absl::StatusOr<int64_t> SqlRows::CountTokens(const std::optional<std::string>& tenant) {
  if (!tenant) return sql::Number(connection_, "SELECT COUNT(*) FROM tokens");
  return sql::Number(connection_, "SELECT COUNT(*) FROM tokens WHERE tenant = ?", *tenant);
}

absl::Status SqlRows::InsertToken(const AccessToken& token) {
  return sql::Run(connection_, sql::Insert<AccessToken>("tokens"), token);
}

absl::Status SqlRows::DeleteToken(const std::string& sha256) {
  return sql::Run(connection_, "DELETE FROM tokens WHERE sha256 = ?", sha256);
}

absl::StatusOr<std::vector<AccessToken>> SqlRows::ListTokens() {
  return sql::All<AccessToken>(connection_, sql::Select<AccessToken>("tokens ORDER BY sha256"));
}

}  // namespace chainfleet
