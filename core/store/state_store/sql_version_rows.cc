// The methods of SqlRows for versions, aliases and expired draws.
#include "core/store/state_store/sql_query.h"
#include "core/store/state_store/sql_rows.h"

namespace chainfleet {

absl::StatusOr<std::optional<std::string>> SqlRows::Tombstone(const ChainId& id, int64_t first_index) {
  return sql::First<std::string>(connection_,
                                 "UPDATE segments SET deleted = 1 WHERE job = ? AND chain = ? AND first_index = ? AND "
                                 "deleted = 0 RETURNING object",
                                 id, first_index);
}

absl::Status SqlRows::AddExpired(const ChainId& id, const std::string& object) {
  return sql::RunLater(connection_, "INSERT INTO expired (job, chain, object) VALUES (?, ?, ?)", id, object);
}

absl::StatusOr<std::optional<std::string>> SqlRows::TakeExpired(int64_t ticket) {
  return sql::First<std::string>(connection_, "DELETE FROM expired WHERE ticket = ? RETURNING object", ticket);
}

absl::StatusOr<std::optional<Version>> SqlRows::NewestVersion(const std::string& job) {
  return sql::First<Version>(connection_, sql::Select<Version>("snapshots WHERE job = ? ORDER BY number DESC LIMIT 1"),
                             job);
}

absl::StatusOr<std::optional<Version>> SqlRows::FindVersion(const std::string& job, int64_t number) {
  return sql::First<Version>(connection_, sql::Select<Version>("snapshots WHERE job = ? AND number = ?"), job, number);
}

absl::StatusOr<std::vector<Version>> SqlRows::ListVersions(const std::string& job, int64_t after, int32_t limit) {
  return sql::All<Version>(connection_,
                           sql::Select<Version>("snapshots WHERE job = ? AND number > ? ORDER BY number LIMIT ?"), job,
                           after, limit);
}

absl::StatusOr<std::vector<int64_t>> SqlRows::VersionNumbers(const std::string& job, int64_t last) {
  return sql::All<int64_t>(connection_, "SELECT number FROM snapshots WHERE job = ? AND number <= ? ORDER BY number",
                           job, last);
}

absl::StatusOr<int64_t> SqlRows::LastVersionNumber(const std::string& job) {
  return sql::Number(connection_, "SELECT last_version FROM jobs WHERE id = ?", job);
}

absl::Status SqlRows::InsertVersion(const Version& version) {
  CHAINFLEET_RETURN_IF_ERROR(sql::Run(connection_, sql::Insert<Version>("snapshots"), version));
  return sql::Run(connection_, "UPDATE jobs SET last_version = ? WHERE id = ?", version.number, version.job);
}

absl::Status SqlRows::DeleteVersion(const std::string& job, int64_t number) {
  return sql::Run(connection_, "DELETE FROM snapshots WHERE job = ? AND number = ?", job, number);
}

absl::StatusOr<std::optional<Alias>> SqlRows::FindAlias(const std::string& tenant, const std::string& name) {
  return sql::First<Alias>(connection_, sql::Select<Alias>("aliases WHERE tenant = ? AND name = ?"), tenant, name);
}

absl::StatusOr<std::vector<Alias>> SqlRows::AliasesOfJob(const std::string& job) {
  return sql::All<Alias>(connection_, sql::Select<Alias>("aliases WHERE job = ? ORDER BY name"), job);
}

absl::StatusOr<int64_t> SqlRows::CountAliases(const std::string& tenant) {
  return sql::Number(connection_, "SELECT COUNT(*) FROM aliases WHERE tenant = ?", tenant);
}

absl::Status SqlRows::PutAlias(const Alias& alias) {
  return sql::Run(connection_, sql::Insert<Alias>("aliases", 2), alias);
}

absl::Status SqlRows::DeleteAlias(const std::string& tenant, const std::string& name) {
  return sql::Run(connection_, "DELETE FROM aliases WHERE tenant = ? AND name = ?", tenant, name);
}

absl::StatusOr<std::vector<StoredAlias>> SqlRows::ListAliases() {
  const std::string columns =
      absl::StrCat(sql::Listed(sql::ColumnsOf<Alias>(), "a."), ", ", sql::Listed(sql::ColumnsOf<Version>(), "s."));
  return sql::All<StoredAlias>(connection_,
                               absl::StrCat("SELECT ", columns,
                                            " FROM aliases a JOIN snapshots s ON s.job = a.job AND s.number = a.number "
                                            "ORDER BY a.tenant, a.name"));
}

absl::StatusOr<std::vector<ExpiredObject>> SqlRows::ListExpired(int64_t last, int32_t limit) {
  return sql::All<ExpiredObject>(
      connection_, sql::Select<ExpiredObject>("expired WHERE ticket <= ? ORDER BY ticket LIMIT ?"), last, limit);
}

absl::StatusOr<int64_t> SqlRows::LastExpired() {
  return sql::Number(connection_, "SELECT COALESCE(MAX(ticket), 0) FROM expired");
}

}  // namespace chainfleet
