// The contract of the embedded store only: its file.
#include "core/store/state_store/sqlite_state_store.h"

#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "core/store/state_store/sqlite_connection.h"
#include "core/store/state_store/sqlite_schema.h"
#include "tests/core/state_store/older_content.h"
#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

// Files of this process cannot grow beyond `bytes`: writes fail as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_signal_);
  }

 private:
  rlimit old_;
  void (*old_signal_)(int);
};

TEST(SqliteStateStore, RefusesANewerSchemaWithBothVersions) {
  SqliteHarness harness;
  harness.Open();
  ASSERT_TRUE(SqliteConnection::Open(harness.path()).value()->Execute("PRAGMA user_version = 99").ok());
  const auto store = OpenSqliteStateStore(harness.path(), "x");
  EXPECT_EQ(ReasonOf(store.status()), "SCHEMA_TOO_NEW");
  EXPECT_THAT(std::string(store.status().message()),
              testing::AllOf(testing::HasSubstr("99"), testing::HasSubstr(std::to_string(kSqliteSchemaVersion))));
}

TEST(SqliteStateStore, APurgedJobKeepsItsIdsAndNotItsPlan) {
  SqliteHarness harness;
  const auto store = harness.Open();
  const std::vector<StateChange> changes{
      change::BeginUpload{"u", {"shard-0"}}, change::PutDataset{SmallDataset("digits"), "u"},
      change::CreateJob{PlanOf("job-aaaaaa", 1, true), "r1"}, change::SetIntent{"job-aaaaaa", JobIntent::kDelete},
      change::PurgeJob{"job-aaaaaa"}};
  const auto results = store->Apply(changes, absl::UnixEpoch()).value();
  for (const ApplyResult& result : results) EXPECT_TRUE(result.status.ok()) << result.status;
  const auto file = SqliteConnection::Open(harness.path()).value();
  SqlStatement row = file->Prepare("SELECT id, request_id, plan, dataset, module FROM jobs").value();
  ASSERT_TRUE(row.Step().value());
  EXPECT_EQ(row.Text(0), "job-aaaaaa");
  EXPECT_EQ(row.Text(1), "r1");
  EXPECT_EQ(row.Text(2), "{}");
  EXPECT_TRUE(row.IsNull(3));
  EXPECT_TRUE(row.IsNull(4));
}

TEST(SqliteStateStore, UpgradesTheFirstSchemaVersion) {
  SqliteHarness harness;
  const change::CreateJob create{PlanOf("job-aaaaaa", 2), "r1"};
  const change::GrantLease first{{"job-aaaaaa", 0}, 1, "w1", "w1-life"};
  harness.Open()->Apply(std::vector<StateChange>{create, first}, absl::UnixEpoch()).value();
  const auto older = SqliteConnection::Open(harness.path());
  ASSERT_TRUE((*older)
                  ->Execute("ALTER TABLE chains DROP COLUMN crashes; ALTER TABLE resume_points DROP COLUMN proof; "
                            "DROP TABLE content_objects; DROP TABLE findings; DROP TABLE uploads; DROP TABLE sweeps; "
                            "DROP INDEX corrupt_segments; "
                            "DROP TABLE models; DROP TABLE former_incarnations; DROP TABLE aliases; DROP TABLE "
                            "expired; DROP TABLE evaluations; DROP TABLE tokens; "
                            "CREATE TABLE old (sequence INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, request_id TEXT "
                            "UNIQUE, dataset TEXT, plan TEXT NOT NULL, intent INTEGER NOT NULL, created_ns INTEGER NOT "
                            "NULL, finished_ns INTEGER, purged INTEGER NOT NULL DEFAULT 0); "
                            "INSERT INTO old SELECT sequence, id, request_id, dataset, plan, intent, created_ns, "
                            "finished_ns, purged FROM jobs; DROP TABLE jobs; ALTER TABLE old RENAME TO jobs; "
                            "INSERT INTO garbage VALUES ('left-over'); ALTER TABLE store "
                            "DROP COLUMN objects_id; ALTER TABLE store DROP COLUMN objects_in; PRAGMA user_version = 1")
                  .ok());
  const auto store = harness.OpenAt({"id-1", "/srv/blobs"}).value();
  EXPECT_THAT(*store->ListGarbage("", 10), testing::ElementsAre("left-over"));
  ASSERT_EQ(store->ListSweeps(0, 10)->size(), 1u) << "the chain that may have objects";
  EXPECT_EQ(store->ListSweeps(0, 10)->at(0).chain, (ChainId{"job-aaaaaa", 0}));
  const change::GrantLease grant{{"job-aaaaaa", 1}, 1, "w1", "w1-life"};
  EXPECT_TRUE(store->Apply(std::vector<StateChange>{grant}, absl::UnixEpoch())->at(0).status.ok());
  EXPECT_EQ(store->Load()->jobs.at(0).chains.at(1).lease_epoch, 1);
  EXPECT_EQ(store->Load()->jobs.at(0).row.tenant, kDefaultTenant);
  EXPECT_EQ(ReasonOf(store->Apply(std::vector<StateChange>{create}, absl::UnixEpoch())->at(0).status),
            "REQUEST_ID_USED");
}

TEST(SqliteStateStore, UpgradesNamesOfAllTenants) {
  SqliteHarness harness;
  PutOlderContent(harness.Open().get());
  ASSERT_TRUE(
      (*SqliteConnection::Open(harness.path()))->Execute(std::string(kOlderNames) + "; PRAGMA user_version = 15").ok());
  ExpectUpgradedContent(harness.Open().get());
}

TEST(SqliteStateStore, RefusesAFileThatIsNoDatabase) {
  SqliteHarness harness;
  std::ofstream(harness.path()) << std::string(8192, 'x');
  EXPECT_TRUE(absl::IsDataLoss(OpenSqliteStateStore(harness.path(), "x").status()));
}

TEST(SqliteStateStore, RefusesADamagedFile) {
  SqliteHarness harness;
  harness.Open()
      ->Apply(std::vector<StateChange>{change::CreateJob{PlanOf("job-aaaaaa", 50), ""}}, absl::UnixEpoch())
      .value();
  const auto size = static_cast<int64_t>(std::filesystem::file_size(harness.path()));
  std::fstream file(harness.path(), std::ios::in | std::ios::out | std::ios::binary);
  for (int64_t page = 4096; page < size; page += 4096) file.seekp(page) << std::string(64, '\x5a');
  file.close();
  EXPECT_TRUE(absl::IsDataLoss(OpenSqliteStateStore(harness.path(), "x").status()));
}

TEST(SqliteStateStore, FullDatabaseFailsTheChangesAndKeepsWhatWasThere) {
  SqliteHarness harness;
  const auto store = harness.Open();
  const auto create = [&](const std::string& job) {
    const std::vector<StateChange> changes{change::CreateJob{PlanOf(job + "-aaaaaa", 1), ""},
                                           change::CreateJob{PlanOf(job + "-bbbbbb", 1000), ""}};
    return store->Apply(changes, absl::UnixEpoch());
  };
  ASSERT_TRUE(create("first")->at(1).status.ok());
  const absl::StatusOr<std::vector<ApplyResult>> full = [&] {
    const FileSizeLimit limit(200'000);
    return create("second");
  }();
  ASSERT_TRUE(full.ok()) << full.status();
  for (const ApplyResult& result : *full) {
    EXPECT_TRUE(absl::IsResourceExhausted(result.status));
    EXPECT_EQ(ReasonOf(result.status), "DISK_FULL");
  }
  EXPECT_EQ(store->Load()->jobs.size(), 2u);
  EXPECT_TRUE(create("third")->at(1).status.ok()) << "space came back";
}

TEST(SqliteStateStore, PathThatCannotBeOpenedIsNamed) {
  const auto store = OpenSqliteStateStore("/nonexistent/folder/state.db", "x");
  EXPECT_THAT(std::string(store.status().message()), testing::HasSubstr("/nonexistent/folder/state.db"));
}

}  // namespace
}  // namespace chainfleet
