#include "client/cli/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ContextTest : public ::testing::Test {
 protected:
  ContextTest() {
    for (const char* name : {"CHAINFLEET_ADDRESS", "CHAINFLEET_CONTEXT", "CHAINFLEET_TOKEN", "CHAINFLEET_TOKEN_FILE",
                             "CHAINFLEET_TOKEN_COMMAND"}) {
      unsetenv(name);
    }
    setenv("CHAINFLEET_CONTEXTS", file_.c_str(), 1);
  }
  ~ContextTest() override {
    unsetenv("CHAINFLEET_CONTEXTS");
    std::filesystem::remove_all(std::filesystem::path(file_).parent_path());
  }
  void Write(const std::string& text) const { std::ofstream(file_) << text; }

  // Tests run at the same time, each in its process.
  const std::string file_ = ::testing::TempDir() + "context-" + std::to_string(getpid()) + "/config.yaml";
};

TEST_F(ContextTest, KeepsAndReadsTheServers) {
  ASSERT_TRUE(WriteConfiguration({"lab", {{"lab", {"a:1,b:2", "", "echo secret"}}, {"prod", {"c:3", "", ""}}}}).ok());
  EXPECT_THAT(OptionsOfContext("", "")->addresses, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(*OptionsOfContext("", "")->token.Current(), "secret");
  EXPECT_THAT(OptionsOfContext("prod", "")->addresses, ElementsAre("c:3"));
  EXPECT_EQ(*OptionsOfContext("prod", "")->token.Current(), "");
}

TEST_F(ContextTest, ATokenFileIsReadForEachCall) {
  const std::string token = std::filesystem::path(file_).parent_path() / "token";
  ASSERT_TRUE(WriteConfiguration({"lab", {{"lab", {"a:1", token, ""}}}}).ok());
  std::ofstream(token) << "first\n";
  const absl::StatusOr<ClientOptions> options = OptionsOfContext("", "");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(*options->token.Current(), "first");
  std::ofstream(token) << "second\n";
  EXPECT_EQ(*options->token.Current(), "second");
}

// Each run prints another token.
TEST_F(ContextTest, ACommandRunsOnceInAProcessAndAgainForARefusedToken) {
  const std::string folder = std::filesystem::path(file_).parent_path();
  std::filesystem::create_directories(folder);
  const std::string command = "echo x >> " + folder + "/runs; echo token-$(wc -l < " + folder + "/runs) mine";
  setenv("CHAINFLEET_TOKEN_COMMAND", command.c_str(), 1);
  const absl::StatusOr<ClientOptions> one = OptionsOfContext("", "a:1"), other = OptionsOfContext("", "a:1");
  unsetenv("CHAINFLEET_TOKEN_COMMAND");
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_EQ(*one->token.Current(), "token-1");
  EXPECT_EQ(*other->token.Current(), "token-1");
  EXPECT_EQ(*one->renew_token("token-1"), "token-2");
  EXPECT_EQ(*other->renew_token("token-1"), "token-2") << "it has been renewed already";
  EXPECT_EQ(*other->renew_token("token-2"), "token-3");
}

TEST_F(ContextTest, TheEnvironmentsTokensGoBeforeThatOfTheContext) {
  ASSERT_TRUE(WriteConfiguration({"lab", {{"lab", {"a:1", "", "echo of-the-context"}}}}).ok());
  setenv("CHAINFLEET_TOKEN_COMMAND", "echo printed", 1);
  EXPECT_EQ(*OptionsOfContext("", "")->token.Current(), "printed");
  setenv("CHAINFLEET_TOKEN", "given", 1);
  EXPECT_EQ(*OptionsOfContext("", "")->token.Current(), "given");
  setenv("CHAINFLEET_TOKEN_COMMAND", "exit 3", 1);
  EXPECT_TRUE(OptionsOfContext("", "").ok()) << "it is not run";
  unsetenv("CHAINFLEET_TOKEN");
  EXPECT_TRUE(absl::IsFailedPrecondition(OptionsOfContext("", "").status()));
  EXPECT_THAT(std::string(OptionsOfContext("", "").status().message()),
              HasSubstr("CHAINFLEET_TOKEN_COMMAND failed: exit 3"));
}

TEST_F(ContextTest, ACommandThatPrintsNoTokenIsAnError) {
  for (const char* command : {"true", "echo"}) {
    ASSERT_TRUE(WriteConfiguration({"", {{"lab", {"a:1", "", command}}}}).ok());
    const absl::Status status = OptionsOfContext("lab", "").status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("token_command printed nothing: ", command)));
  }
}

TEST_F(ContextTest, TheAddressDecidesBeforeTheContextAndTheContextBeforeTheEnvironment) {
  ASSERT_TRUE(WriteConfiguration({"lab", {{"lab", {"a:1", "", ""}}}}).ok());
  EXPECT_THAT(OptionsOfContext("lab", "z:9")->addresses, ElementsAre("z:9"));
  setenv("CHAINFLEET_ADDRESS", "e:5", 1);
  EXPECT_THAT(OptionsOfContext("", "")->addresses, ElementsAre("e:5"));
  EXPECT_THAT(OptionsOfContext("lab", "")->addresses, ElementsAre("a:1"));
  setenv("CHAINFLEET_CONTEXT", "lab", 1);
  EXPECT_THAT(OptionsOfContext("", "")->addresses, ElementsAre("a:1"));
}

TEST_F(ContextTest, SaysWhatIsWrong) {
  ASSERT_TRUE(WriteConfiguration({"", {{"lab", {"a:1", "", "exit 3"}}}}).ok());
  EXPECT_THAT(std::string(OptionsOfContext("prod", "").status().message()), HasSubstr("known: lab"));
  EXPECT_THAT(std::string(OptionsOfContext("lab", "").status().message()), HasSubstr("token_command failed: exit 3"));
  Write("contexts: {lab: {adress: a:1}}\n");
  EXPECT_THAT(std::string(ReadConfiguration().status().message()), HasSubstr("unknown key adress"));
  Write("contexts: {lab: {address: 'a:1', token_file: x, token_command: y}}\n");
  EXPECT_THAT(std::string(ReadConfiguration().status().message()), HasSubstr("has two tokens"));
  Write("contexts: [\n");
  EXPECT_THAT(std::string(ReadConfiguration().status().message()), HasSubstr("config.yaml"));
}

}  // namespace
}  // namespace chainfleet
