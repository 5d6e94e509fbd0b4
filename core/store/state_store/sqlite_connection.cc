#include "core/store/state_store/sqlite_connection.h"

#include <sqlite3.h>

#include <string_view>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

constexpr std::string_view kInMemory = ":memory:";

// ENOSPC arrives as SQLITE_FULL, or as an I/O error of the failing call.
bool IsFull(int extended_code) {
  switch (extended_code) {
    case SQLITE_FULL:
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_SHMSIZE:
    case SQLITE_IOERR_SHMOPEN:
    case SQLITE_IOERR_SHMMAP:
    case SQLITE_IOERR_TRUNCATE:
      return true;
    default:
      return false;
  }
}

absl::Status ErrorOf(sqlite3* database) {
  const int code = sqlite3_extended_errcode(database);
  const char* file = sqlite3_db_filename(database, "main");
  const std::string message =
      absl::StrCat(file != nullptr ? file : "state store", ": ", sqlite3_errmsg(database), " (SQLite ", code, ")");
  if (IsFull(code)) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(message, ": free space on its disk, nothing was lost")),
                      "DISK_FULL");
  }
  if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB) return absl::DataLossError(message);
  return absl::InternalError(message);
}

// Resets the statement when it goes out of scope; the statement stays prepared.
class SqliteCursor final : public SqlCursor {
 public:
  explicit SqliteCursor(sqlite3_stmt* statement) : statement_(statement) {}
  ~SqliteCursor() override {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }

  void BindNull() override { sqlite3_bind_null(statement_, ++bound_); }
  void BindInt(int64_t value) override { sqlite3_bind_int64(statement_, ++bound_, value); }
  void BindText(const std::string& text) override {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }
  void BindBytes(const std::string& bytes) override {
    sqlite3_bind_blob(statement_, ++bound_, bytes.data(), static_cast<int>(bytes.size()), SQLITE_TRANSIENT);
  }

  absl::StatusOr<bool> Step() override {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return ErrorOf(sqlite3_db_handle(statement_));
  }

  bool IsNull(int column) const override { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t Int(int column) const override { return sqlite3_column_int64(statement_, column); }
  std::string Text(int column) const override {
    const void* bytes = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return size == 0 ? std::string() : std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
  }

 private:
  sqlite3_stmt* const statement_;
  int bound_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const std::string& path) {
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  // SQLite's "memdb" file system shares a database whose name begins with a slash.
  const bool in_memory = path.starts_with(kInMemory);
  const std::string file = in_memory ? "/" + path.substr(kInMemory.size()) : path;
  if (const int code = sqlite3_open_v2(file.c_str(), &database, flags, in_memory ? "memdb" : nullptr);
      code != SQLITE_OK) {
    const absl::Status status = absl::InternalError(absl::StrCat(path, ": ", sqlite3_errstr(code)));
    sqlite3_close(database);
    return status;
  }
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_timeout(database, 5000);
  return std::unique_ptr<SqliteConnection>(new SqliteConnection(database, path));
}

SqliteConnection::~SqliteConnection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(database_);
}

absl::StatusOr<SqlStatement> SqliteConnection::Prepare(const std::string& sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (statement == nullptr &&
      sqlite3_prepare_v3(database_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) {
    return ErrorOf(database_);
  }
  return SqlStatement(std::make_unique<SqliteCursor>(statement));
}

absl::Status SqliteConnection::Execute(const std::string& sql) {
  return sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? absl::OkStatus()
                                                                                      : ErrorOf(database_);
}

int64_t SqliteConnection::changes() const { return sqlite3_changes64(database_); }

void SqliteConnection::Rollback() {
  if (sqlite3_get_autocommit(database_) == 0) sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
}

}  // namespace chainfleet
