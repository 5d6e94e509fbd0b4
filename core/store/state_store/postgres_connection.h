// PostgreSQL as an SqlConnection, through libpqxx, whose headers only the .cc includes.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "core/store/state_store/database_password.h"
#include "core/store/state_store/sql_connection.h"

namespace chainfleet {

// Every statement, idle transaction and silent connection ends after a few seconds: a coordinator that waits longer
// could block its successor. After a connection broke, the next statement outside a transaction reconnects. Errors:
// RESOURCE_EXHAUSTED / DISK_FULL; UNAVAILABLE / STORE_UNREACHABLE (there is no connection, it broke, or the server has
// no time or resources for the statement now; reads may be retried, the outcome of a commit is unknown); else INTERNAL.
class PostgresConnection final : public SqlConnection {
 public:
  // `uri`: postgresql://user@host/database?... or libpq keywords. `name` appears in pg_stat_activity. `password`, if
  // not null, is asked before each connection and goes before all other passwords; it needs a URI. INVALID_ARGUMENT:
  // the URI cannot be parsed; the error does not quote it. FAILED_PRECONDITION: the server runs with
  // synchronous_commit=off, so it could lose a commit that it has confirmed. Errors of `password`.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& uri, const std::string& name,
                                                                  std::shared_ptr<DatabasePassword> password = nullptr);
  ~PostgresConnection() override;

  absl::StatusOr<SqlStatement> Prepare(const std::string& sql) override;
  absl::Status Execute(const std::string& sql) override;
  int64_t changes() const override { return changes_; }
  absl::Status BeginWrite() override;
  absl::Status BeginRead() override;
  absl::Status Commit() override;
  void Rollback() override;

  // Process id of the server backend of this connection.
  int backend_pid() const;

 private:
  struct Line;
  friend class PostgresCursor;
  PostgresConnection(std::string uri, std::string name, std::shared_ptr<DatabasePassword> password);
  absl::Status Connect();
  // Runs the statements of RunLater.
  absl::Status CatchUp();
  // Reconnects if the connection broke and no transaction was lost with it.
  absl::Status EnsureLine();

  const std::string uri_, name_;
  const std::shared_ptr<DatabasePassword> password_;
  const std::unique_ptr<Line> line_;
  std::unordered_map<std::string, std::string> statements_;  // statement names by text
  std::string later_;                                        // deferred statements of the open transaction
  int64_t changes_ = 0;
};

}  // namespace chainfleet
