#include "client/cli/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ContextTest : public ::testing::Test {
 protected:
  ContextTest() {
    for (const char* name : {"CHAINFLEET_ADDRESS", "CHAINFLEET_CONTEXT", "CHAINFLEET_TOKEN", "CHAINFLEET_TOKEN_FILE"}) {
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
