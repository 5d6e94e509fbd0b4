// A database of SQLite in this process's memory, and the state stores that tests open on it: the SQL that ships,
// without a disk.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "core/store/state_store/sqlite_connection.h"
#include "core/store/state_store/sqlite_state_store.h"

namespace chainfleet {

// The database and the stores that are open on it outlive each other.
class MemoryDatabase {
 public:
  explicit MemoryDatabase(std::string incarnation) : incarnation_(std::move(incarnation)) {}

  // The argument of SqliteConnection::Open and CopyState.
  const std::string& path() const { return path_; }

  // Opens a store, which takes the database over.
  std::unique_ptr<StateStore> Open() { return OpenAt({}).value(); }
  absl::StatusOr<std::unique_ptr<StateStore>> OpenAt(const ObjectHome& home) {
    return OpenSqliteStateStore(path_, incarnation_, Opening::kUsual, home);
  }
  // Opens the database as a backup that was restored.
  std::unique_ptr<StateStore> OpenRestored(const std::string& fresh_incarnation) {
    return OpenSqliteStateStore(path_, fresh_incarnation, Opening::kRestored).value();
  }

 private:
  static std::string NextPath() {
    static std::atomic<int> made = 0;
    return ":memory:" + std::to_string(++made);
  }

  const std::string incarnation_;
  const std::string path_ = NextPath();
  const std::unique_ptr<SqliteConnection> keeper_ = SqliteConnection::Open(path_).value();
};

}  // namespace chainfleet
