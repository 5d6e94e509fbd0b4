#include "client/cli/daemon.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;

// A run folder whose pid file names this process.
class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest() : folder_(std::filesystem::current_path()), name_("daemon-test-" + std::to_string(getpid())) {}
  ~DaemonTest() override {
    std::filesystem::remove(path(".pid"));
    std::filesystem::remove(path(".log"));
  }
  std::string path(const char* extension) const { return folder_ + "/" + name_ + extension; }
  void WritePid(const std::string& text) { std::ofstream(path(".pid")) << text; }

  const std::string folder_, name_;
  const std::string self_ = std::filesystem::read_symlink("/proc/self/exe");
};

TEST_F(DaemonTest, FindsItsProcessByPidFileProgramAndFolder) {
  WritePid(std::to_string(getpid()) + "\n");
  EXPECT_EQ(Daemon(name_, self_, folder_).Pid(), getpid());
}

TEST_F(DaemonTest, TakesNoOtherProcessForIts) {
  const Daemon daemon(name_, self_, folder_);
  EXPECT_EQ(daemon.Pid(), std::nullopt);  // no pid file
  for (const char* text : {"", "x", "0", "-1", "1"}) {
    WritePid(text);
    EXPECT_EQ(daemon.Pid(), std::nullopt) << text;
  }
  WritePid(std::to_string(getpid()));
  EXPECT_EQ(Daemon(name_, "/usr/bin/other", folder_).Pid(), std::nullopt);
}

TEST_F(DaemonTest, TellsHowAProcessThatItStartedHasEnded) {
  const FakeClock clock;  // waits for the end of the process, however long it takes
  const Daemon shell(name_, "/bin/sh", folder_);
  ASSERT_TRUE(shell.Start({"-c", "exit 3"}).ok());
  EXPECT_EQ(shell.HowItEnded(absl::Seconds(1), &clock), " with exit status 3");
  ASSERT_TRUE(shell.Start({"-c", "kill -KILL $$"}).ok());
  EXPECT_EQ(shell.HowItEnded(absl::Seconds(1), &clock), " by signal 9 (Killed)");
}

TEST_F(DaemonTest, DoesNotTellHowAProcessOfAnotherProgramEnded) {
  const FakeClock clock;
  const Daemon daemon(name_, self_, folder_);
  for (const char* text : {"", "-1", "0", "1"}) {
    WritePid(text);
    EXPECT_EQ(daemon.HowItEnded(absl::Seconds(1), &clock), "") << text;
  }
}

TEST_F(DaemonTest, HasEndedOnlyIfItWasStartedAndNotStopped) {
  FakeClock clock;
  const Daemon daemon(name_, self_, folder_);
  EXPECT_FALSE(daemon.HasEnded()) << "never started";
  WritePid(std::to_string(getpid()));
  EXPECT_FALSE(daemon.HasEnded()) << "runs";
  WritePid("1");
  EXPECT_TRUE(daemon.HasEnded());
  ASSERT_TRUE(daemon.Stop(absl::Seconds(1), &clock).ok());
  EXPECT_FALSE(daemon.HasEnded()) << "stopped";
}

TEST_F(DaemonTest, StoppingWhatDoesNotRunRemovesTheStalePidFile) {
  WritePid("1");
  FakeClock clock;
  const auto stopped = Daemon(name_, self_, folder_).Stop(absl::Seconds(1), &clock);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_FALSE(*stopped);
  EXPECT_FALSE(std::filesystem::exists(path(".pid")));
}

TEST_F(DaemonTest, ShowsTheEndOfItsLog) {
  std::ofstream log(path(".log"));
  for (int i = 0; i < 100; ++i) log << "line " << i << "\n";
  log.close();
  const auto tail = Daemon(name_, self_, folder_).LogTail();
  EXPECT_EQ(tail.back(), "line 99");
  EXPECT_LT(tail.size(), 20u);
}

}  // namespace
}  // namespace chainfleet
