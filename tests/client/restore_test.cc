// Tests the options of the verb restore that need no server.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "client/cli/exit_code.h"
#include "client/cli/verbs/verbs.h"

namespace chainfleet {
namespace {

TEST(RestoreVerb, OfflineRefusesOptionsOfCallsAndFormats) {
  for (const std::vector<std::string>& option : std::vector<std::vector<std::string>>{
           {"--address", "127.0.0.1:1"}, {"--context", "lab"}, {"--timeout", "1s"}, {"-o", "json"}, {"-o", "yaml"}}) {
    std::vector<std::string> arguments = {"restore", "/no/such/backup", "--offline"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    std::reverse(arguments.begin(), arguments.end());  // order that CLI11 expects
    CLI::App program;
    Invocation run;
    AddRestore(&program, &run);
    program.parse(arguments);
    EXPECT_EQ(ExitCodeOf(run.status), kExitUsage) << run.status;
    EXPECT_NE(std::string(run.status.message()).find("leave " + option[0] + " out"), std::string::npos) << run.status;
  }
}

}  // namespace
}  // namespace chainfleet
