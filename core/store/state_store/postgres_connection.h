// PostgreSQL as an SqlConnection, through libpqxx. No header of libpqxx is seen beyond its .cc.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/store/state_store/sql_connection.h"

namespace chainfleet {

// Every statement, idle transaction and silent line ends after a few seconds: a coordinator that waits longer could
// hold up the one that replaces it. A line that broke is made anew by the next statement outside a transaction.
// Errors: RESOURCE_EXHAUSTED / DISK_FULL, UNAVAILABLE / STORE_UNREACHABLE (no line, or it broke, or the server has no
// time or room for the statement now: reads may be repeated, nothing is known of a commit), else INTERNAL.
class PostgresConnection final : public SqlConnection {
 public:
  // `uri`: postgresql://user@host/database?... or the keywords of libpq. `name` shows in pg_stat_activity.
  // INVALID_ARGUMENT, without a word of it, if it cannot be read.
  // FAILED_PRECONDITION if the server runs with synchronous_commit=off: a commit it answered could be lost.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& uri, const std::string& name);
  ~PostgresConnection() override;

  absl::StatusOr<SqlStatement> Prepare(const char* sql) override;
  absl::Status Execute(const std::string& sql) override;
  int64_t changes() const override { return changes_; }
  absl::Status BeginWrite() override;
  absl::Status BeginRead() override;
  absl::Status Commit() override;
  void Rollback() override;

  // The server process that serves this line now.
  int backend_pid() const;

 private:
  struct Line;
  friend class PostgresCursor;
  PostgresConnection(std::string uri, std::string name);
  absl::Status Connect();
  // Runs what was to run later.
  absl::Status CatchUp();
  // Connects anew if the line broke and no transaction was lost with it.
  absl::Status EnsureLine();

  const std::string uri_, name_;
  const std::unique_ptr<Line> line_;
  std::map<const char*, std::string> statements_;  // names by literal
  std::string later_;                              // statements of the open transaction
  int64_t changes_ = 0;
};

}  // namespace chainfleet
