// The contract of PostgreSQL only: one of several coordinators leads. Needs the server of with_postgres.py.
#include "core/store/state_store/postgres_leader.h"

#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/store/state_store/postgres_schema.h"
#include "tests/core/state_store/older_content.h"
#include "tests/core/state_store/state_store_fixture.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

class PostgresLeaderTest : public testing::Test {
 protected:
  // A coordinator at `address` that treats a leader as lost after `timeout`.
  std::unique_ptr<PostgresLeader> Coordinator(const std::string& address, absl::Duration timeout = absl::Seconds(6)) {
    return PostgresLeader::Connect({harness_.uri(), address, "s-" + address, timeout}).value();
  }
  static constexpr absl::Duration kAtOnce = -absl::Hours(1);
  static absl::Status Write(StateStore* store, const std::string& job) {
    return store->Apply(std::vector<StateChange>{change::CreateJob{PlanOf(job, 1), ""}}, absl::UnixEpoch()).status();
  }
  void Execute(const std::string& sql) {
    const absl::Status done = PostgresConnection::Open(harness_.uri(), "test").value()->Execute(sql);
    ASSERT_TRUE(done.ok()) << done;
  }
  PostgresHarness harness_{PostgresServer()};
};

TEST_F(PostgresLeaderTest, TheFirstLeadsAndTheSecondLearnsWhereItIs) {
  const auto first = Coordinator("a:7400"), second = Coordinator("b:7400");
  const auto elected = first->TakeOver();
  ASSERT_NE(elected->store, nullptr);
  EXPECT_EQ(elected->store->incarnation(), "s-a:7400");
  for (int i = 0; i < 2; ++i) {
    const auto refused = second->TakeOver();
    EXPECT_EQ(refused->store, nullptr);
    EXPECT_EQ(refused->leader_address, "a:7400");
    EXPECT_TRUE(first->Renew().ok());
  }
}

TEST_F(PostgresLeaderTest, AStandbyTakesOverAndTheOldLeaderCanNeitherWriteNorRenew) {
  const auto old = Coordinator("a:7400"), standby = Coordinator("b:7400", kAtOnce);
  const auto before = old->TakeOver();
  ASSERT_TRUE(Write(before->store.get(), "job-aaaaaa").ok());
  const auto after = standby->TakeOver();
  ASSERT_NE(after->store, nullptr);
  EXPECT_EQ(after->store->generation(), before->store->generation() + 1);
  EXPECT_EQ(after->store->incarnation(), before->store->incarnation());
  EXPECT_EQ(ReasonOf(Write(before->store.get(), "job-bbbbbb")), "NOT_LEADER");
  EXPECT_EQ(ReasonOf(old->Renew()), "NOT_LEADER");
  EXPECT_TRUE(Write(after->store.get(), "job-cccccc").ok());
  EXPECT_EQ(after->store->Load()->jobs.size(), 2u);
}

TEST_F(PostgresLeaderTest, ALeaderThatResignsIsFollowedAtOnce) {
  const auto leader = Coordinator("a:7400"), standby = Coordinator("b:7400");
  const auto elected = leader->TakeOver();
  EXPECT_EQ(standby->TakeOver()->store, nullptr);
  ASSERT_TRUE(leader->Resign().ok());
  EXPECT_NE(standby->TakeOver()->store, nullptr);
}

TEST_F(PostgresLeaderTest, ATakeoverThatFailsLeavesTheLeadToAnother) {
  const auto first = Coordinator("a:7400"), second = Coordinator("b:7400"), third = Coordinator("c:7400");
  ASSERT_NE(first->TakeOver()->store, nullptr);
  ASSERT_TRUE(first->Resign().ok());
  Execute("ALTER TABLE store RENAME COLUMN incarnation TO lost");
  EXPECT_FALSE(second->TakeOver().ok());
  Execute("ALTER TABLE store RENAME COLUMN lost TO incarnation");
  const auto elected = third->TakeOver();
  ASSERT_NE(elected->store, nullptr);
  for (PostgresLeader* const deposed : {first.get(), second.get()}) {
    const auto refused = deposed->TakeOver();
    EXPECT_EQ(refused->store, nullptr);
    EXPECT_EQ(refused->leader_address, "c:7400");
    EXPECT_EQ(ReasonOf(deposed->Renew()), "NOT_LEADER");
  }
  EXPECT_TRUE(third->Renew().ok());
  EXPECT_TRUE(Write(elected->store.get(), "job-aaaaaa").ok());
}

TEST_F(PostgresLeaderTest, AStandbyThatWouldMissTheObjectsIsRefusedWhileAnotherLeads) {
  const auto at = [&](const std::string& address, absl::Duration timeout, const ObjectHome& home) {
    return PostgresLeader::Connect({harness_.uri(), address, "s", timeout, Opening::kUsual, home}).value();
  };
  const auto leader = at("a:7400", absl::Seconds(6), {"s3://one/", "s3://one/"});
  const auto elected = leader->TakeOver();
  ASSERT_NE(elected->store, nullptr);
  ASSERT_TRUE(Write(elected->store.get(), "job-bbbbbb").ok());
  for (const absl::Duration timeout : {absl::Seconds(6), kAtOnce}) {
    const auto refused = at("b:7400", timeout, {"id-2", "/srv/blobs on host-b"})->TakeOver();
    EXPECT_EQ(ReasonOf(refused.status()), "OTHER_STORE");
  }
  EXPECT_TRUE(leader->Renew().ok());
  EXPECT_TRUE(Write(elected->store.get(), "job-aaaaaa").ok()) << "its line was not ended";
  EXPECT_EQ(at("c:7400", absl::Seconds(6), {"s3://one/", "s3://one/"})->TakeOver()->leader_address, "a:7400");
}

TEST_F(PostgresLeaderTest, ATransactionTheOldLeaderLeftOpenDoesNotHoldUpTheNext) {
  const auto old = Coordinator("a:7400");
  const auto elected = old->TakeOver();
  // Acts as a leader that stopped in the middle of a write: holds the row, and its connection has the leader's name.
  const auto hung = PostgresConnection::Open(harness_.uri(), "chainfleet-leader").value();
  ASSERT_TRUE(hung->BeginWrite().ok());
  ASSERT_TRUE(hung->Execute("SELECT generation FROM leader FOR KEY SHARE").ok());
  Execute("UPDATE leader SET backend_pid = " + std::to_string(hung->backend_pid()));
  EXPECT_NE(Coordinator("b:7400", kAtOnce)->TakeOver()->store, nullptr);
  EXPECT_EQ(ReasonOf(hung->Commit()), "STORE_UNREACHABLE");
}

TEST_F(PostgresLeaderTest, RenewingDoesNotWaitForAnOpenWrite) {
  const auto leader = Coordinator("a:7400");
  const auto elected = leader->TakeOver();
  const auto writer = PostgresConnection::Open(harness_.uri(), "writer").value();
  ASSERT_TRUE(writer->BeginWrite().ok());
  ASSERT_TRUE(writer->Execute("SELECT generation FROM leader FOR KEY SHARE").ok());
  EXPECT_TRUE(leader->Renew().ok());
}

TEST_F(PostgresLeaderTest, ReadsContinueAfterAConnectionLoss) {
  const auto leader = Coordinator("a:7400");
  const auto elected = leader->TakeOver();
  ASSERT_TRUE(Write(elected->store.get(), "job-aaaaaa").ok());
  Execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'chainfleet-reader' AND "
      "datname = current_database()");
  EXPECT_EQ(ReasonOf(elected->store->Load().status()), "STORE_UNREACHABLE");
  EXPECT_EQ(elected->store->Load()->jobs.size(), 1u);
}

TEST_F(PostgresLeaderTest, DistinguishesPassingErrorsFromPermanentOnes) {
  const auto connection = PostgresConnection::Open(harness_.uri(), "test").value();
  const auto raise = [&](const std::string& sqlstate) {
    return connection->Execute("DO $$ BEGIN RAISE EXCEPTION 'as told' USING ERRCODE = '" + sqlstate + "'; END $$");
  };
  for (const char* passing : {"40001", "40P01", "53000", "53200", "53300", "57000", "57014", "57P01", "57P03", "58000",
                              "58030", "25006", "25P03", "08006"}) {
    const absl::Status status = raise(passing);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(ReasonOf(status), "STORE_UNREACHABLE") << passing;
  }
  for (const char* wrong : {"42P01", "23505", "25P02", "XX000"}) {
    EXPECT_TRUE(absl::IsInternal(raise(wrong))) << wrong;
  }
  EXPECT_EQ(ReasonOf(raise("53100")), "DISK_FULL");
}

TEST_F(PostgresLeaderTest, AReadThatTimesOutMayBeRepeatedAndAWriteIsOfUnknownOutcome) {
  const auto elected = Coordinator("a:7400")->TakeOver();
  ASSERT_TRUE(Write(elected->store.get(), "job-aaaaaa").ok());
  const auto locker = PostgresConnection::Open(harness_.uri(), "test").value();
  ASSERT_TRUE(locker->BeginWrite().ok());
  ASSERT_TRUE(locker->Execute("SET LOCAL idle_in_transaction_session_timeout = 0").ok());
  ASSERT_TRUE(locker->Execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE").ok());
  const absl::Status read = elected->store->Load().status();
  EXPECT_TRUE(absl::IsUnavailable(read)) << read;
  EXPECT_EQ(ReasonOf(read), "STORE_UNREACHABLE");
  const std::vector<StateChange> create{change::CreateJob{PlanOf("job-bbbbbb", 1), ""}};
  EXPECT_EQ(ReasonOf(elected->store->Apply(create, absl::UnixEpoch()).status()), "OUTCOME_UNKNOWN");
  locker->Rollback();
  EXPECT_EQ(elected->store->Load()->jobs.size(), 1u);
  EXPECT_EQ(ReasonOf(elected->store->Apply(create, absl::UnixEpoch()).status()), "OUTCOME_UNKNOWN")
      << "whoever met it first, the process ends";
}

TEST_F(PostgresLeaderTest, NoStatementOfAPurgeGrowsWithTheJob) {
  const auto elected = Coordinator("a:7400")->TakeOver();
  ASSERT_TRUE(Write(elected->store.get(), "job-aaaaaa").ok());
  Execute(
      "INSERT INTO segments (job, chain, first_index, digest, object, record) "
      "SELECT 'job-aaaaaa', g % 7, g / 7, 'd', 'o' || g, '{}' FROM generate_series(0, 49999) AS g; "
      "INSERT INTO expired (job, chain, object) SELECT 'job-aaaaaa', 0, 'o' || g FROM generate_series(0, 2499) AS g; "
      "CREATE FUNCTION few() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF (SELECT COUNT(*) FROM touched) > " +
      std::to_string(change::kPurgePage) +
      " THEN RAISE EXCEPTION 'too many rows in one statement'; END IF; RETURN NULL; END $$; "
      "CREATE TRIGGER few_segments AFTER DELETE ON segments REFERENCING OLD TABLE AS touched "
      "FOR EACH STATEMENT EXECUTE FUNCTION few(); "
      "CREATE TRIGGER few_deleted AFTER DELETE ON expired REFERENCING OLD TABLE AS touched "
      "FOR EACH STATEMENT EXECUTE FUNCTION few()");
  const auto apply = [&](StateChange change) {
    const auto results = elected->store->Apply(std::vector<StateChange>{std::move(change)}, absl::UnixEpoch());
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->at(0) : ApplyResult();
  };
  apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  int pages = 0;
  for (std::optional<change::PurgeJob> next = {{"job-aaaaaa"}}; next; ++pages) next = apply(*next).purge;
  EXPECT_EQ(pages, 50 + 3);
  EXPECT_TRUE(elected->store->Load()->jobs.empty());
  EXPECT_TRUE(elected->store->ListSegments({.job = "job-aaaaaa"})->empty());
  EXPECT_EQ(*elected->store->LastExpired(), 0);
}

TEST_F(PostgresLeaderTest, RestoringMayTakeLongerThanAStatement) {
  ASSERT_TRUE(Write(Coordinator("a:7400")->TakeOver().value().store.get(), "job-aaaaaa").ok());
  Execute(
      "CREATE FUNCTION unhurried() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF current_setting('statement_timeout') <> '0' THEN RAISE EXCEPTION 'this may time out'; END IF; "
      "RETURN NULL; END $$; "
      "CREATE TRIGGER chains_leap BEFORE UPDATE ON chains FOR EACH STATEMENT EXECUTE FUNCTION unhurried()");
  const auto leader = PostgresLeader::Connect({harness_.uri(), "b:7400", "s-b", kAtOnce, Opening::kRestored}).value();
  const auto elected = leader->TakeOver();
  ASSERT_TRUE(elected.ok()) << elected.status();
  EXPECT_GT(elected->store->generation(), kRestoredLeap);
  const change::GrantLease grant{{"job-aaaaaa", 0}, kRestoredLeap + 1, "w1", "w1-life"};
  EXPECT_FALSE(elected->store->Apply(std::vector<StateChange>{grant}, absl::UnixEpoch()).ok())
      << "afterwards every statement has its end again";
}

TEST_F(PostgresLeaderTest, RefusesANewerSchemaWithBothVersions) {
  Coordinator("a:7400")->TakeOver().value();
  Execute("UPDATE store SET schema_version = 99");
  const auto election = Coordinator("b:7400", kAtOnce)->TakeOver();
  EXPECT_EQ(ReasonOf(election.status()), "SCHEMA_TOO_NEW");
  EXPECT_THAT(std::string(election.status().message()),
              testing::AllOf(testing::HasSubstr("99"), testing::HasSubstr(std::to_string(kPostgresSchemaVersion))));
}

TEST_F(PostgresLeaderTest, UpgradesTheFirstSchemaVersion) {
  ASSERT_TRUE(Write(Coordinator("a:7400")->TakeOver().value().store.get(), "job-aaaaaa").ok());
  Execute(
      "ALTER TABLE garbage ADD COLUMN deleting BIGINT; ALTER TABLE resume_points DROP COLUMN proof; "
      "DROP TABLE content_objects; DROP TABLE findings; DROP TABLE tokens; DROP TABLE models; ALTER TABLE jobs DROP "
      "COLUMN module; DROP TABLE former_incarnations; "
      "DROP TABLE evaluations; DROP TABLE aliases; DROP TABLE expired; ALTER TABLE jobs DROP COLUMN last_version, DROP "
      "COLUMN stopped, DROP COLUMN asked_chains; "
      "ALTER TABLE store DROP COLUMN objects_id, DROP COLUMN objects_in; ALTER TABLE jobs DROP COLUMN tenant; ALTER "
      "TABLE jobs ADD UNIQUE (request_id); UPDATE store SET "
      "schema_version = 1");
  const auto elected = Coordinator("b:7400", kAtOnce)->TakeOver();
  ASSERT_TRUE(elected.ok()) << elected.status();
  EXPECT_EQ(elected->store->Load()->jobs.size(), 1u);
  EXPECT_TRUE(elected->store->Load()->models.empty());
  EXPECT_TRUE(Write(elected->store.get(), "job-bbbbbb").ok());
}

TEST_F(PostgresLeaderTest, UpgradesNamesOfAllTenants) {
  PutOlderContent(Coordinator("a:7400")->TakeOver().value().store.get());
  Execute(std::string(kOlderNames) + "; UPDATE store SET schema_version = 13");
  const auto elected = Coordinator("b:7400", kAtOnce)->TakeOver();
  ASSERT_TRUE(elected.ok()) << elected.status();
  ExpectUpgradedContent(elected->store.get());
}

TEST_F(PostgresLeaderTest, ANewerStandbyLeavesTheTablesOfAnOlderLeaderAlone) {
  const auto leader = Coordinator("a:7400");
  const auto elected = leader->TakeOver();
  Execute(
      "DROP TABLE aliases; DROP TABLE expired; ALTER TABLE jobs DROP COLUMN last_version; UPDATE store SET "
      "schema_version = 5");
  EXPECT_EQ(Coordinator("b:7400")->TakeOver()->leader_address, "a:7400");
  Execute("ALTER TABLE jobs ADD COLUMN last_version BIGINT");  // fails if the column exists
  Execute(
      "ALTER TABLE jobs DROP COLUMN last_version, DROP COLUMN stopped, DROP COLUMN asked_chains; "
      "ALTER TABLE garbage ADD COLUMN deleting BIGINT; ALTER TABLE evaluations DROP COLUMN version; "
      "ALTER TABLE resume_points DROP COLUMN proof; "
      "ALTER TABLE store DROP COLUMN objects_id, DROP COLUMN objects_in; DROP TABLE findings; DROP "
      "TABLE tokens; DROP TABLE content_objects");
  EXPECT_TRUE(leader->Renew().ok());
  const auto next = Coordinator("b:7400", kAtOnce)->TakeOver();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(Write(next->store.get(), "job-bbbbbb").ok());
}

TEST_F(PostgresLeaderTest, RefusesADatabaseThatMayLoseItsCommits) {
  const std::string name = harness_.uri().substr(harness_.uri().rfind('/') + 1);
  Execute("ALTER DATABASE " + name + " SET synchronous_commit = off");
  const auto refused = PostgresLeader::Connect({harness_.uri(), "a:7400", "s", absl::Seconds(6)});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("synchronous_commit"));
}

// The server trusts this user; tests/e2e/failover_test.py has one that needs its password.
TEST_F(PostgresLeaderTest, AConnectionThatIsOpenedAgainAsksForThePasswordAgain) {
  FakeClock clock;
  const std::string runs = testing::TempDir() + "connection-runs-" + std::to_string(getpid());
  const auto password = std::make_shared<DatabasePassword>("echo x >> " + runs + "; echo ' a&b=c%@/'",
                                                           std::vector<std::string>{"PATH=/usr/bin:/bin"}, &clock);
  const auto connection = PostgresConnection::Open(harness_.uri(), "test", password).value();
  clock.Advance(DatabasePassword::kUse);
  Execute(absl::StrCat("SELECT pg_terminate_backend(", connection->backend_pid(), ")"));
  while (connection->Execute("SELECT 1").ok()) continue;
  const absl::Status again = connection->Execute("SELECT 1");
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_EQ(std::filesystem::file_size(runs), 2 * std::string("x\n").size());
  std::filesystem::remove(runs);
}

TEST_F(PostgresLeaderTest, WithoutAPasswordThereIsNoConnection) {
  FakeClock clock;
  const auto password =
      std::make_shared<DatabasePassword>("exit 3", std::vector<std::string>{"PATH=/usr/bin:/bin"}, &clock);
  const auto refused = PostgresConnection::Open(harness_.uri(), "test", password);
  EXPECT_EQ(ReasonOf(refused.status()), "STORE_UNREACHABLE");
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("/bin/sh: exit 3"));
}

TEST_F(PostgresLeaderTest, AnUnreachableServerIsReported) {
  const auto refused = PostgresLeader::Connect({"postgresql://127.0.0.1:1/x", "a:7400", "s", absl::Seconds(6)});
  EXPECT_EQ(ReasonOf(refused.status()), "STORE_UNREACHABLE");
}

}  // namespace
}  // namespace chainfleet
