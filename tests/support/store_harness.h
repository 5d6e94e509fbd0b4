// Every implementation of StateStore, opened and opened again on the same data.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/store/state_store/memory_state_store.h"
#include "core/store/state_store/sqlite_state_store.h"
#include "gtest/gtest.h"

namespace chainfleet {

// Open() twice on one harness opens the same data twice.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;
  virtual std::unique_ptr<StateStore> Open() = 0;
};

class MemoryHarness final : public StoreHarness {
 public:
  std::unique_ptr<StateStore> Open() override { return std::make_unique<MemoryStateStore>(database_); }

 private:
  std::shared_ptr<MemoryDatabase> database_ = std::make_shared<MemoryDatabase>("incarnation-1");
};

// In a folder of the running test's own, removed with it.
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
  std::unique_ptr<StateStore> Open() override {
    auto store = OpenSqliteStateStore(path(), "incarnation-1");
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

 private:
  std::filesystem::path folder_;
};

enum class StoreKind { kMemory, kSqlite };

inline std::unique_ptr<StoreHarness> MakeHarness(StoreKind kind) {
  if (kind == StoreKind::kMemory) return std::make_unique<MemoryHarness>();
  return std::make_unique<SqliteHarness>();
}

inline std::string StoreKindName(const testing::TestParamInfo<StoreKind>& info) {
  return info.param == StoreKind::kMemory ? "Memory" : "Sqlite";
}

}  // namespace chainfleet
