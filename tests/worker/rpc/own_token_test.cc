#include "worker/rpc/own_token.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

class OwnTokenTest : public ::testing::Test {
 protected:
  OwnTokenTest() { Clear(); }
  ~OwnTokenTest() override { Clear(); }

  static void Clear() {
    for (const char* name : {"CHAINFLEET_TOKEN", "CHAINFLEET_TOKEN_FILE", "CHAINFLEET_WORKER_TOKEN", "KEPT",
                             "CHAINFLEET_WORKER_TOKEN_FILE", "CHAINFLEET_METRICS_TOKEN", kCommand}) {
      unsetenv(name);
    }
  }
  static void Set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

  static constexpr char kCommand[] = "CHAINFLEET_WORKER_TOKEN_COMMAND";
};

TEST_F(OwnTokenTest, TheCommandComesAfterAWorkersTokenAndBeforeACallers) {
  EXPECT_EQ(OwnToken().value(), "");
  Set("CHAINFLEET_TOKEN", "callers");
  EXPECT_EQ(OwnToken().value(), "callers");
  EXPECT_FALSE(TokenIsPrinted());
  Set(kCommand, "echo; echo '  printed for workers'");
  EXPECT_TRUE(TokenIsPrinted());
  EXPECT_EQ(OwnToken().value(), "printed");
  const std::string path = ::testing::TempDir() + "own-token-" + std::to_string(getpid());
  std::ofstream(path) << "filed\n";
  Set("CHAINFLEET_WORKER_TOKEN_FILE", path);
  EXPECT_FALSE(TokenIsPrinted());
  EXPECT_EQ(OwnToken().value(), "filed");
  std::ofstream(path) << "";
  EXPECT_EQ(OwnToken().value(), "") << "neither the command's nor a caller's";
  std::filesystem::remove(path);
  Set("CHAINFLEET_WORKER_TOKEN", "given");
  EXPECT_EQ(OwnToken().value(), "given");
}

TEST_F(OwnTokenTest, TheCommandSeesTheEnvironmentWithoutItsTokens) {
  Set("CHAINFLEET_TOKEN", "callers");
  Set("CHAINFLEET_WORKER_TOKEN", "");
  Set("CHAINFLEET_METRICS_TOKEN", "readers");
  Set("KEPT", "kept");
  Set(kCommand, "echo \"[${CHAINFLEET_TOKEN-}${CHAINFLEET_WORKER_TOKEN-}${CHAINFLEET_METRICS_TOKEN-}]$KEPT\"");
  EXPECT_EQ(OwnToken().value(), "[]kept");
}

TEST_F(OwnTokenTest, ErrorsNameTheCommandsFailureAndNotItsOutput) {
  Set("CHAINFLEET_TOKEN", "callers");
  const std::pair<const char*, const char*> kCases[] = {
      {"echo tell-nobody; echo tell-nobody >&2; exit 3", "CHAINFLEET_WORKER_TOKEN_COMMAND: /bin/sh: exit 3"},
      {"yes tell-nobody", "CHAINFLEET_WORKER_TOKEN_COMMAND: /bin/sh: said more than 65536 bytes"},
      {"echo; echo tell-nobody >&2", "CHAINFLEET_WORKER_TOKEN_COMMAND printed nothing"}};
  for (const auto& [command, said] : kCases) {
    Set(kCommand, command);
    EXPECT_EQ(OwnToken().status().message(), said);
  }
}

}  // namespace
}  // namespace chainfleet
