#include "core/base/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

class CommandTest : public testing::Test {
 protected:
  absl::StatusOr<std::string> Shell(const std::string& script, const CommandLimits& limits = {}) {
    return RunCommand(clock_, {"sh", "-c", script}, {"PATH=/usr/bin:/bin", "WHO=me"}, limits);
  }
  SystemClock clock_;
};

TEST_F(CommandTest, ReadsTheOutputAndPassesOnlyTheEnvironment) {
  EXPECT_EQ(*Shell("echo \"$WHO\"; echo oops >&2; cat"), "me\n");
  EXPECT_EQ(*RunCommand(clock_, {"env"}, {"A=b,c $HOME"}), "A=b,c $HOME\n");
  EXPECT_EQ(*RunCommand(clock_, {"printf", "%s", "; echo $PATH"}, {}), "; echo $PATH");
}

TEST_F(CommandTest, ReportsWhyAProgramFailed) {
  const absl::Status status = Shell("echo said; echo no such partition >&2; exit 3").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(status.message()), "sh: exit 3: no such partition");
  std::string told;
  EXPECT_EQ(Shell("echo secret >&2; exit 3", {.standard_error = &told}).status().message(), "sh: exit 3");
  EXPECT_EQ(told, "secret");
  EXPECT_THAT(std::string(Shell("kill -9 $$").status().message()), HasSubstr("ended by signal 9"));
  EXPECT_EQ(RunCommand(clock_, {"no-such-program"}, {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CommandTest, KillsASlowProgramWithAllItsChildren) {
  const CommandLimits brief{.time = absl::Milliseconds(50)};
  EXPECT_EQ(Shell("tail -f /dev/null | tail -f /dev/null", brief).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Shell("exec >/dev/null 2>&1; while :; do :; done", brief).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(CommandTest, KillsAProgramWithTooMuchOutput) {
  const CommandLimits small{.time = absl::Minutes(1), .output_bytes = 1000};
  EXPECT_EQ(Shell("yes", small).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(CommandTest, AStopKillsAProgramThatHangs) {
  const std::string fifo = testing::TempDir() + "command-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::stop_source source;
  absl::Status status;
  std::thread running([&] {
    const CommandLimits limits{.time = absl::Minutes(10), .stop = source.get_token()};
    status = Shell("echo up > " + fifo + "; tail -f /dev/null | tail -f /dev/null", limits).status();
  });
  std::string line;
  std::ifstream says(fifo);  // opens when the program runs
  std::getline(says, line);
  source.request_stop();
  running.join();
  EXPECT_EQ(line, "up");
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_EQ(Shell("tail -f /dev/null", {.time = absl::Minutes(10), .stop = source.get_token()}).status().code(),
            absl::StatusCode::kCancelled)
      << "a later one ends at once";
  std::filesystem::remove(fifo);
}

TEST_F(CommandTest, FindsProgramsAsTheSystemDoes) {
  EXPECT_EQ(*FindProgram("sh", "/no-such-folder:/bin"), "/bin/sh");
  EXPECT_THAT(std::string(FindProgram("sbatch", "/no-such-folder").status().message()),
              HasSubstr("sbatch is not in PATH (/no-such-folder)"));
}

}  // namespace
}  // namespace chainfleet
