// Needs the server of with_postgres.py.
#include "server/election.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <thread>

#include "tests/support/manual_executor.h"
#include "tests/support/store_harness.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kTerm = absl::Seconds(6);

class LeadKeeperTest : public testing::Test {
 protected:
  std::unique_ptr<PostgresLeader> Coordinator(const std::string& address, absl::Duration timeout = kTerm) {
    return PostgresLeader::Connect({harness_.uri(), address, "store", timeout}).value();
  }
  // One that leads and keeps it.
  void SetUp() override {
    auto leader = Coordinator("a:7400");
    store_ = std::move(leader->TakeOver().value().store);
    ASSERT_NE(store_, nullptr);
    keeper_ = std::make_unique<LeadKeeper>(std::move(leader), kTerm, &clock_, &executor_,
                                           [this](const absl::Status& status) { lost_.push_back(status); });
  }
  // The process of the database's server that renewals wait for.
  pid_t Renewer() {
    const auto connection = PostgresConnection::Open(harness_.uri(), "test").value();
    SqlStatement find = connection
                            ->Prepare(
                                "SELECT pid FROM pg_stat_activity WHERE application_name = 'chainfleet-lease' "
                                "AND datname = current_database()")
                            .value();
    EXPECT_TRUE(find.Step().value());
    return static_cast<pid_t>(find.Int(0));
  }

  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  std::vector<absl::Status> lost_;
  PostgresHarness harness_{PostgresServer()};
  std::unique_ptr<StateStore> store_;
  std::unique_ptr<LeadKeeper> keeper_;
};

TEST_F(LeadKeeperTest, RenewsForAsLongAsItLives) {
  executor_.RunFor(10 * kTerm);
  EXPECT_THAT(lost_, testing::IsEmpty());
  EXPECT_EQ(Coordinator("b:7400")->TakeOver()->leader_address, "a:7400");
}

TEST_F(LeadKeeperTest, LosesTheLeadOnceWhenAnotherHasTakenOver) {
  ASSERT_NE(Coordinator("b:7400", -absl::Hours(1))->TakeOver()->store, nullptr);
  executor_.RunFor(3 * kTerm);
  ASSERT_THAT(lost_, testing::SizeIs(1));
  EXPECT_EQ(ReasonOf(lost_[0]), "NOT_LEADER");
}

TEST_F(LeadKeeperTest, LosesTheLeadWithItsTermWhileARenewalWaitsForItsAnswer) {
  const pid_t renewer = Renewer();
  ASSERT_EQ(kill(renewer, SIGSTOP), 0);
  clock_.Advance(kTerm / 3);
  std::thread renewal([this] { executor_.RunOne(); });
  while (executor_.num_tasks() != 1) continue;  // until the renewal has begun and only the watch of the term is left
  clock_.Advance(kTerm - kTerm / 3 - absl::Milliseconds(1));
  executor_.RunUntilIdle();
  EXPECT_THAT(lost_, testing::IsEmpty());
  clock_.Advance(absl::Milliseconds(1));
  executor_.RunUntilIdle();
  EXPECT_THAT(lost_, testing::SizeIs(1));
  ASSERT_EQ(kill(renewer, SIGCONT), 0);
  renewal.join();
  executor_.RunFor(3 * kTerm);
  EXPECT_THAT(lost_, testing::SizeIs(1));
}

TEST_F(LeadKeeperTest, TheRenewalThatFindsItsConnectionBrokenConnectsAgain) {
  const pid_t renewer = Renewer();
  ASSERT_EQ(kill(renewer, SIGTERM), 0);
  while (kill(renewer, 0) == 0) continue;
  executor_.RunFor(kTerm / 3);
  EXPECT_NE(Renewer(), renewer);
}

TEST_F(LeadKeeperTest, GivesTheLeadUpWhenItEnds) {
  const auto standby = Coordinator("b:7400");
  EXPECT_EQ(standby->TakeOver()->store, nullptr);
  store_ = nullptr;
  keeper_ = nullptr;
  EXPECT_NE(standby->TakeOver()->store, nullptr);
}

TEST(WaitToLead, TellsOnceOfADatabaseThatIsAwayAndOnceThatItIsBack) {
  PostgresHarness harness{PostgresServer()};
  const std::string name = harness.uri().substr(harness.uri().rfind('/') + 1);
  const auto leader = PostgresLeader::Connect({harness.uri(), "a:7400", "store", absl::Hours(1)}).value();
  ASSERT_NE(leader->TakeOver()->store, nullptr);
  const auto admin = PostgresConnection::Open(std::string(PostgresServer()) + "/postgres", "test").value();
  const auto take_away = [&](bool away) {
    ASSERT_TRUE(admin->Execute("ALTER DATABASE " + name + " ALLOW_CONNECTIONS " + (away ? "false" : "true")).ok());
    if (!away) return;
    ASSERT_TRUE(admin
                    ->Execute("DO $$ BEGIN PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" +
                              name + "'; END $$")
                    .ok());
  };
  int pauses = 0;
  const auto pause = [&](absl::Duration) {
    if (++pauses == 2) take_away(true);
    if (pauses == 5) take_away(false);
    return pauses < 8;
  };
  testing::internal::CaptureStdout();
  const auto lead =
      WaitToLead({harness.uri(), "b:7400", "store", absl::Hours(1)}, {{"127.0.0.1:0"}, {"off"}}, RngKey{1}, pause);
  const std::string logged = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(lead.ok()) << lead.status();
  EXPECT_FALSE(lead->has_value());
  const auto times = [&logged](const std::string& text) {
    int count = 0;
    for (size_t at = logged.find(text); at != std::string::npos; at = logged.find(text, at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(times("standby cannot read the leader, retrying"), 1) << logged;
  EXPECT_EQ(times("standby reads the leader again"), 1) << logged;
}

}  // namespace
}  // namespace chainfleet
