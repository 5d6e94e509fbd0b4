#include "core/store/state_store/sqlite_state_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/store/state_store/sql_state_store.h"
#include "core/store/state_store/sqlite_schema.h"

namespace chainfleet {
namespace {

absl::Status CheckFile(const std::string& path, SqliteConnection* connection) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement check, connection->Prepare("PRAGMA quick_check(1)"));
  CHAINFLEET_RETURN_IF_ERROR(check.Step().status());
  if (check.Text(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " is damaged (", check.Text(0), "): restore it from a backup"));
}

absl::StatusOr<StoreOwnership> ReadOwnership(SqliteConnection* connection) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection->Prepare("SELECT incarnation, generation FROM store"));
  CHAINFLEET_RETURN_IF_ERROR(s.Step().status());
  return StoreOwnership{s.Text(0), s.Int(1), "SELECT generation FROM store"};
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateStore>> OpenSqliteStateStore(const std::string& path,
                                                                 const std::string& fresh_incarnation, Opening opening,
                                                                 const ObjectHome& home) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> writer, SqliteConnection::Open(path));
  CHAINFLEET_RETURN_IF_ERROR(writer->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"));
  CHAINFLEET_RETURN_IF_ERROR(CheckFile(path, writer.get()));
  CHAINFLEET_RETURN_IF_ERROR(PrepareSqliteSchema(fresh_incarnation, opening, home, writer.get()));
  CHAINFLEET_ASSIGN_OR_RETURN(StoreOwnership ownership, ReadOwnership(writer.get()));
  CHAINFLEET_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> reader, SqliteConnection::Open(path));
  CHAINFLEET_RETURN_IF_ERROR(reader->Execute("PRAGMA query_only = 1"));
  return std::make_unique<SqlStateStore>(std::move(writer), std::move(reader), std::move(ownership));
}

}  // namespace chainfleet
