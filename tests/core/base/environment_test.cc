#include "core/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace chainfleet {
namespace {

class EnvironmentTest : public ::testing::Test {
 protected:
  EnvironmentTest() {
    for (const char* name : {"CHAINFLEET_DATA", "XDG_DATA_HOME", "CHAINFLEET_TOKEN", "CHAINFLEET_TOKEN_FILE",
                             "CHAINFLEET_WORKER_TOKEN", "CHAINFLEET_WORKER_TOKEN_FILE", "CHAINFLEET_METRICS_TOKEN"})
      unsetenv(name);
    setenv("HOME", "/home/me", 1);
  }
  static void Set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
};

TEST_F(EnvironmentTest, TheMostSpecificDataFolderWins) {
  EXPECT_EQ(DefaultDataFolder(), "/home/me/.local/share/chainfleet");
  Set("XDG_DATA_HOME", "/data");
  EXPECT_EQ(DefaultDataFolder(), "/data/chainfleet");
  Set("CHAINFLEET_DATA", "/srv/fleet");
  EXPECT_EQ(DefaultDataFolder(), "/srv/fleet");
}

TEST_F(EnvironmentTest, TheTokenMayStandInAFile) {
  EXPECT_EQ(BearerToken().value(), "");
  const std::string path = ::testing::TempDir() + "token-" + std::to_string(::getpid());
  std::ofstream(path) << "secret\n";
  Set("CHAINFLEET_TOKEN_FILE", path);
  EXPECT_EQ(BearerToken().value(), "secret");
  std::ofstream(path) << "\n  mine tenant-a\nanother tenant-b\n";
  EXPECT_EQ(BearerToken().value(), "mine") << "a call carries the first word";
  EXPECT_EQ(TokenText(kCallerToken).value(), "\n  mine tenant-a\nanother tenant-b\n");
  Set("CHAINFLEET_TOKEN", "given");
  EXPECT_EQ(BearerToken().value(), "given");
  std::filesystem::remove(path);
}

TEST_F(EnvironmentTest, TheTokenOfCallsChangesWithItsFileAndNotWithTheEnvironment) {
  EXPECT_EQ(*OpenCallerToken()->Current(), "");
  const std::string path = ::testing::TempDir() + "caller-" + std::to_string(::getpid());
  Set("CHAINFLEET_TOKEN_FILE", path);
  EXPECT_TRUE(absl::IsNotFound(OpenCallerToken().status()));
  std::ofstream(path) << "mine tenant-a\n";
  const Reread<std::string> token = *OpenCallerToken();
  unsetenv("CHAINFLEET_TOKEN_FILE");
  EXPECT_EQ(*token.Current(), "mine");
  std::ofstream(path) << "changed\n";
  EXPECT_EQ(*token.Current(), "changed");
  std::filesystem::remove(path);
  Set("CHAINFLEET_TOKEN", "given");
  EXPECT_EQ(*OpenCallerToken()->Current(), "given");
}

TEST_F(EnvironmentTest, AnEmptyTokenIsToldFromNone) {
  EXPECT_EQ(TokenText(kCallerToken).value(), std::nullopt);
  Set("CHAINFLEET_TOKEN", "");
  EXPECT_EQ(TokenText(kCallerToken).value(), "");
  EXPECT_EQ(TokenText(kWorkerToken).value(), std::nullopt);
  Set("CHAINFLEET_WORKER_TOKEN_FILE", "");
  EXPECT_EQ(TokenText(kWorkerToken).value(), "");
  EXPECT_EQ(BearerToken(kWorkerToken).value(), "");
}

TEST_F(EnvironmentTest, ATokenThatOthersMustSendIsMissingOrStrong) {
  EXPECT_EQ(StrongToken(kMetricsToken).value(), "");
  for (const std::string weak : {"", "guessed", "exactly-21-characters", "0123456789abcdef0123456789abcde"}) {
    Set("CHAINFLEET_METRICS_TOKEN", weak);
    const std::string error(StrongToken(kMetricsToken).status().message());
    EXPECT_THAT(error, ::testing::HasSubstr("CHAINFLEET_METRICS_TOKEN: the token has fewer than 128 bits"));
    if (weak.empty()) continue;
    EXPECT_THAT(error, ::testing::Not(::testing::HasSubstr(weak)));
  }
  for (const std::string strong : {"exactly-22-characters-", "0123456789abcdef0123456789abcdef"}) {
    Set("CHAINFLEET_METRICS_TOKEN", strong + "\n");
    EXPECT_EQ(StrongToken(kMetricsToken).value(), strong);
  }
}

TEST_F(EnvironmentTest, TheHostHasAName) { EXPECT_THAT(HostName(), ::testing::Not(::testing::IsEmpty())); }

TEST_F(EnvironmentTest, AMissingTokenFileIsNamed) {
  Set("CHAINFLEET_TOKEN_FILE", "/no/such/token");
  EXPECT_THAT(std::string(BearerToken().status().message()),
              ::testing::AllOf(::testing::HasSubstr("CHAINFLEET_TOKEN_FILE"), ::testing::HasSubstr("/no/such/token")));
}

}  // namespace
}  // namespace chainfleet
