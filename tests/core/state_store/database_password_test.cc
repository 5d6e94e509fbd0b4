#include "core/store/state_store/database_password.h"

#include <unistd.h>

#include <filesystem>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DatabasePasswordTest : public ::testing::Test {
 protected:
  ~DatabasePasswordTest() override { std::filesystem::remove(runs_); }

  FakeClock clock_;
  const std::vector<std::string> environment_ = {"PATH=/usr/bin:/bin"};
  const std::string runs_ = ::testing::TempDir() + "password-runs-" + std::to_string(getpid());
  // Each run prints another one.
  DatabasePassword password_{"echo x >> " + runs_ + "; echo pass-$(wc -l < " + runs_ + ")", environment_, &clock_};
};

TEST_F(DatabasePasswordTest, ARunServesForAMinute) {
  EXPECT_EQ(*password_.Get(), "pass-1");
  clock_.Advance(DatabasePassword::kUse - absl::Seconds(1));
  EXPECT_EQ(*password_.Get(), "pass-1");
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(*password_.Get(), "pass-2");
}

TEST_F(DatabasePasswordTest, AfterAFailedConnectionTheCommandRunsAgainButNotAtOnce) {
  EXPECT_EQ(*password_.Get(), "pass-1");
  password_.Distrust();
  EXPECT_EQ(*password_.Get(), "pass-1");
  clock_.Advance(DatabasePassword::kPause);
  EXPECT_EQ(*password_.Get(), "pass-2");
  clock_.Advance(DatabasePassword::kPause);
  EXPECT_EQ(*password_.Get(), "pass-2") << "it is trusted again";
}

TEST_F(DatabasePasswordTest, AFailedRunIsRepeatedAfterThePause) {
  DatabasePassword password("echo x >> " + runs_ + "; test $(wc -l < " + runs_ + ") = 2 && echo right", environment_,
                            &clock_);
  EXPECT_FALSE(password.Get().ok());
  EXPECT_FALSE(password.Get().ok()) << "it has not run again";
  clock_.Advance(DatabasePassword::kPause);
  EXPECT_EQ(*password.Get(), "right");
}

TEST_F(DatabasePasswordTest, OnlyTheEndOfTheLineIsNoPartOfThePassword) {
  EXPECT_EQ(*DatabasePassword("echo ' a b% '", environment_, &clock_).Get(), " a b% ");
  EXPECT_EQ(*DatabasePassword("printf bare", environment_, &clock_).Get(), "bare");
}

TEST_F(DatabasePasswordTest, ErrorsNameTheCommandsFailureAndNotItsOutput) {
  const std::pair<const char*, const char*> kCases[] = {{"echo tell-nobody; exit 3", "/bin/sh: exit 3"},
                                                        {"printf 'tell-nobody\\nmore\\n'", "alone, on one line"},
                                                        {"printf 'tell-nobody\\000x'", "alone, on one line"},
                                                        {"true", "alone, on one line"}};
  for (const auto& [command, said] : kCases) {
    const absl::Status status = DatabasePassword(command, environment_, &clock_).Get().status();
    EXPECT_EQ(ReasonOf(status), "STORE_UNREACHABLE") << command;
    EXPECT_TRUE(absl::IsUnavailable(status)) << command;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--state-password-command: ")) << command;
    EXPECT_THAT(std::string(status.message()), HasSubstr(said)) << command;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("tell-nobody"))) << command;
  }
}

TEST_F(DatabasePasswordTest, StandardErrorOfAFailedCommandIsInTheLogAlone) {
  ::testing::internal::CaptureStdout();
  const absl::Status status = DatabasePassword("echo denied >&2; exit 3", environment_, &clock_).Get().status();
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("denied"));
  EXPECT_EQ(status.message(), "PostgreSQL: --state-password-command: /bin/sh: exit 3");
}

// The clock stands still, so no limit of time ends the command.
TEST_F(DatabasePasswordTest, AStopEndsTheCommand) {
  std::stop_source ending;
  ending.request_stop();
  const absl::Status status =
      DatabasePassword("tail -f /dev/null", environment_, &clock_, ending.get_token()).Get().status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("was stopped"));
}

}  // namespace
}  // namespace chainfleet
