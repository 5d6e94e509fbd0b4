// One SQLite connection with cached statements: RAII, and its result codes as absl::Status.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace chainfleet {

// A prepared statement in use; reset when it goes out of scope. Parameters are bound in order.
class SqliteStatement {
 public:
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}
  SqliteStatement(SqliteStatement&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  ~SqliteStatement();

  SqliteStatement& Bind(int64_t value);
  SqliteStatement& Bind(const std::string& text);
  SqliteStatement& BindBytes(const std::string& bytes);
  template <typename T>
  SqliteStatement& Bind(const std::optional<T>& value) {
    return value ? Bind(*value) : BindNull();
  }

  // True: a row is there.
  absl::StatusOr<bool> Step();
  // For statements without rows.
  absl::Status Run() { return Step().status(); }

  bool IsNull(int column) const;
  int64_t Int(int column) const;
  std::string Text(int column) const;  // bytes, too

 private:
  SqliteStatement& BindNull();
  sqlite3_stmt* statement_;
  int bound_ = 0;
};

// Not thread-safe. Errors: RESOURCE_EXHAUSTED / DISK_FULL, DATA_LOSS (not a database, or a damaged one), else INTERNAL;
// each names the file and SQLite's words.
class SqliteConnection {
 public:
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path);
  ~SqliteConnection();

  // `sql` must be a literal: statements are cached by its address.
  absl::StatusOr<SqliteStatement> Prepare(const char* sql);
  // One or more statements without parameters and rows.
  absl::Status Execute(const std::string& sql);
  // Rows the last statement changed.
  int64_t changes() const;
  // Ends the open transaction, if SQLite has not done so itself.
  void Rollback();

 private:
  SqliteConnection(sqlite3* database, std::string path) : database_(database), path_(std::move(path)) {}
  sqlite3* const database_;
  const std::string path_;
  std::map<const char*, sqlite3_stmt*> statements_;
};

}  // namespace chainfleet
