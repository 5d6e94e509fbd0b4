// SQLite as an SqlConnection, with RAII and absl::Status.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/store/state_store/sql_connection.h"

struct sqlite3;
struct sqlite3_stmt;

namespace chainfleet {

// Errors name the file. ":memory:NAME" is a database in this process's memory. All connections to NAME share it; it is
// deleted with the last of them.
class SqliteConnection final : public SqlConnection {
 public:
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path);
  ~SqliteConnection() override;

  absl::StatusOr<SqlStatement> Prepare(const std::string& sql) override;
  absl::Status Execute(const std::string& sql) override;
  int64_t changes() const override;
  absl::Status BeginWrite() override { return Execute("BEGIN IMMEDIATE"); }
  absl::Status BeginRead() override { return Execute("BEGIN"); }
  absl::Status Commit() override { return Execute("COMMIT"); }
  void Rollback() override;

 private:
  SqliteConnection(sqlite3* database, std::string path) : database_(database), path_(std::move(path)) {}
  sqlite3* const database_;
  const std::string path_;
  std::unordered_map<std::string, sqlite3_stmt*> statements_;  // by text
};

}  // namespace chainfleet
