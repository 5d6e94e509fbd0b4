// Opens every implementation of StateStore, again and again on the same data.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/store/state_store/postgres_leader.h"
#include "core/store/state_store/sqlite_state_store.h"
#include "gtest/gtest.h"
#include "tests/support/memory_database.h"

namespace chainfleet {

// A second Open() on one harness opens the same data.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;
  virtual std::unique_ptr<StateStore> Open() = 0;
  // Opens the store for a process that looks for its objects at `home`.
  virtual absl::StatusOr<std::unique_ptr<StateStore>> OpenAt(const ObjectHome& home) = 0;
  // Opens the data as a backup that was restored.
  virtual std::unique_ptr<StateStore> OpenRestored(const std::string& fresh_incarnation) = 0;
};

class MemoryHarness final : public StoreHarness {
 public:
  std::unique_ptr<StateStore> Open() override { return database_.Open(); }
  std::unique_ptr<StateStore> OpenRestored(const std::string& fresh_incarnation) override {
    return database_.OpenRestored(fresh_incarnation);
  }
  absl::StatusOr<std::unique_ptr<StateStore>> OpenAt(const ObjectHome& home) override { return database_.OpenAt(home); }

 private:
  MemoryDatabase database_{"incarnation-1"};
};

// Uses a folder of the running test, which is removed with it.
class SqliteHarness final : public StoreHarness {
 public:
  SqliteHarness() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test->test_suite_name()) + "." + test->name();
    for (char& c : name) c = c == '/' ? '_' : c;
    folder_ = std::filesystem::path(testing::TempDir()) / ("chainfleet-" + name);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~SqliteHarness() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ / "state.db"; }
  std::unique_ptr<StateStore> Open() override { return Open("incarnation-1", Opening::kUsual); }
  std::unique_ptr<StateStore> OpenRestored(const std::string& fresh_incarnation) override {
    return Open(fresh_incarnation, Opening::kRestored);
  }
  absl::StatusOr<std::unique_ptr<StateStore>> OpenAt(const ObjectHome& home) override {
    return OpenSqliteStateStore(path(), "incarnation-1", Opening::kUsual, home);
  }

 private:
  std::unique_ptr<StateStore> Open(const std::string& incarnation, Opening opening) {
    auto store = OpenSqliteStateStore(path(), incarnation, opening);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  std::filesystem::path folder_;
};

// Uses a database of its own on the server of with_postgres.py.
class PostgresHarness final : public StoreHarness {
 public:
  explicit PostgresHarness(const std::string& server) {
    static int made = 0;
    const std::string name = "store" + std::to_string(++made);
    EXPECT_TRUE(
        PostgresConnection::Open(server + "/postgres", "test").value()->Execute("CREATE DATABASE " + name).ok());
    uri_ = server + "/" + name;
  }
  const std::string& uri() const { return uri_; }
  std::unique_ptr<StateStore> Open() override { return Open("incarnation-1", Opening::kUsual); }
  std::unique_ptr<StateStore> OpenRestored(const std::string& fresh_incarnation) override {
    return Open(fresh_incarnation, Opening::kRestored);
  }
  absl::StatusOr<std::unique_ptr<StateStore>> OpenAt(const ObjectHome& home) override {
    return Elect({uri_, "here:7400", "incarnation-1", -absl::Hours(1), Opening::kUsual, home});
  }

 private:
  // Opens without waiting for the leader's lease to expire.
  std::unique_ptr<StateStore> Open(const std::string& incarnation, Opening opening) {
    auto store = Elect({uri_, "here:7400", incarnation, -absl::Hours(1), opening});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  static absl::StatusOr<std::unique_ptr<StateStore>> Elect(const PostgresOptions& options) {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::unique_ptr<PostgresLeader> leader, PostgresLeader::Connect(options));
    CHAINFLEET_ASSIGN_OR_RETURN(PostgresLeader::Election election, leader->TakeOver());
    return std::move(election.store);
  }

  std::string uri_;
};

enum class StoreKind { kMemory, kSqlite, kPostgres };

// Returns the real server's address, if this run has one.
inline const char* PostgresServer() { return std::getenv("CHAINFLEET_TEST_POSTGRES"); }

// Returns the stores that need no server, or the store on the test's server.
inline std::vector<StoreKind> StoreKinds() {
  if (PostgresServer() != nullptr) return {StoreKind::kPostgres};
  return {StoreKind::kMemory, StoreKind::kSqlite};
}

inline std::unique_ptr<StoreHarness> MakeHarness(StoreKind kind) {
  switch (kind) {
    case StoreKind::kMemory:
      return std::make_unique<MemoryHarness>();
    case StoreKind::kSqlite:
      return std::make_unique<SqliteHarness>();
    case StoreKind::kPostgres:
      return std::make_unique<PostgresHarness>(PostgresServer());
  }
  return nullptr;
}

inline std::string StoreKindName(const testing::TestParamInfo<StoreKind>& info) {
  static constexpr const char* kNames[] = {"Memory", "Sqlite", "Postgres"};
  return kNames[static_cast<int>(info.param)];
}

}  // namespace chainfleet
