#include "core/base/log.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <unistd.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class LogTest : public ::testing::Test {
 protected:
  // Returns the lines that `write` logs to a file.
  template <typename Write>
  static std::vector<std::string> Lines(const std::string& level, Write write) {
    ::testing::internal::CaptureStderr();
    InitLog(Program(), level);
    write();
    std::vector<std::string> lines;
    std::istringstream text(::testing::internal::GetCapturedStderr());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  template <typename Write>
  static nlohmann::json Object(Write write) {
    const std::vector<std::string> lines = Lines("info", write);
    EXPECT_THAT(lines, SizeIs(1));
    return lines.empty() ? nlohmann::json() : nlohmann::json::parse(lines[0], nullptr, false);
  }
  static std::string Program() { return ::testing::UnitTest::GetInstance()->current_test_info()->name(); }

  void TearDown() override { spdlog::set_default_logger(before_); }

  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(LogTest, IsOneJsonObjectALineWithFieldsOfTheirTypes) {
  const nlohmann::json line = Object([] {
    const std::string job = "digits-aaaaaa";
    Log(LogLevel::kWarning, "lease granted",
        {{"job", job}, {"chain", 3}, {"bytes", size_t{5}}, {"worker", "w-1"}, {"idle", false}, {"rate", 0.25}});
  });
  EXPECT_EQ(line["message"], "lease granted");
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["program"], Program());
  EXPECT_TRUE(line["time"].is_string());
  EXPECT_EQ(line["job"], "digits-aaaaaa");
  EXPECT_EQ(line["chain"], 3);
  EXPECT_EQ(line["bytes"], 5);
  EXPECT_EQ(line["worker"], "w-1");
  EXPECT_EQ(line["idle"], false);
  EXPECT_EQ(line["rate"], 0.25);
}

TEST_F(LogTest, QuotesWhatWouldBreakTheLine) {
  const std::string awkward = "a \"b\" \\ c\nd\te\x01 {} 100%";
  const nlohmann::json line = Object([&] { Log(LogLevel::kInfo, awkward, {{"path", awkward}}); });
  EXPECT_EQ(line["message"], awkward);
  EXPECT_EQ(line["path"], awkward);
}

TEST_F(LogTest, WritesNumbersThatJsonLacksAsText) {
  const nlohmann::json line = Object([] {
    Log(LogLevel::kInfo, "diverged",
        {{"energy", std::numeric_limits<double>::quiet_NaN()}, {"bound", std::numeric_limits<double>::infinity()}});
  });
  EXPECT_EQ(line["energy"], "nan");
  EXPECT_EQ(line["bound"], "inf");
}

TEST_F(LogTest, LeavesOutWhatIsBelowTheLevel) {
  const auto write_all = [] {
    for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
      Log(level, "here");
    }
  };
  EXPECT_THAT(Lines("warning", write_all), SizeIs(2));
}

TEST_F(LogTest, TakesAnUnknownLevelForInfo) {
  EXPECT_THAT(Lines("loud",
                    [] {
                      Log(LogLevel::kDebug, "unseen");
                      Log(LogLevel::kInfo, "seen");
                    }),
              SizeIs(1));
}

TEST_F(LogTest, AddsFieldsToEveryLine) {
  AddToEveryLine({{"worker", "w-1"}});
  const std::vector<std::string> lines = Lines("info", [] {
    Log(LogLevel::kInfo, "here", {{"chain", 3}});
    Log(LogLevel::kInfo, "there", {{"worker", "w-2"}});
  });
  EXPECT_THAT(lines, ElementsAre(HasSubstr(R"("chain":3,"worker":"w-1")"),
                                 AllOf(HasSubstr(R"("worker":"w-2")"), Not(HasSubstr("w-1")))));
}

// Returns the text that `write` logs to a terminal, up to the first line break.
template <typename Write>
std::string LineOnATerminal(const std::string& program, Write write) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  CHAINFLEET_CHECK(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0) << "no terminal";
  const int screen = open(ptsname(terminal), O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
  CHAINFLEET_CHECK(screen >= 0 && saved >= 0) << "no terminal";
  dup2(screen, STDERR_FILENO);
  InitLog(program, "info");
  write();
  dup2(saved, STDERR_FILENO);
  std::string line;
  char byte = 0;  // one at a time, because a terminal may return a part of a line
  while (byte != '\n' && read(terminal, &byte, 1) == 1) line += byte;
  for (const int descriptor : {terminal, screen, saved}) close(descriptor);
  return line;
}

TEST_F(LogTest, IsTextOnATerminal) {
  const std::string line = LineOnATerminal(Program(), [] {
    Log(LogLevel::kInfo, "draw kept", {{"chain", 3}, {"kind", "theta"}, {"why", "last epoch"}});
  });
  EXPECT_THAT(line, AllOf(HasSubstr("draw kept chain=3 kind=theta why=\"last epoch\""), Not(HasSubstr("{"))));
}

TEST_F(LogTest, EscapesLineBreaksAndTerminalControls) {
  const std::string line = LineOnATerminal(Program(), [] {
    Log(LogLevel::kInfo, "job\nmade", {{"why", "a\n00:00:00.000 E\x1b[2Jlost"}, {"name", "x\rlost\x7f"}});
  });
  EXPECT_THAT(line, HasSubstr(R"(job\u000amade why="a\u000a00:00:00.000 E\u001b[2Jlost" name="x\u000dlost\u007f")"));
}

TEST_F(LogTest, EscapesTerminalControlsBeyondAscii) {
  const std::string line = LineOnATerminal(Program(), [] {
    Log(LogLevel::kInfo, "\u009b2Jlost\u0085",
        {{"name", "a\u2028b\u2029c"}, {"path", "\u202egnp.exe\u202c"}, {"id", "\u2066x\u2069\u200f"}});
  });
  EXPECT_THAT(line, HasSubstr(R"(\u009b2Jlost\u0085 name="a\u2028b\u2029c" path="\u202egnp.exe\u202c")"
                              R"( id="\u2066x\u2069\u200f")"));
}

TEST_F(LogTest, ShowsLettersOfAllLanguages) {
  const std::string text = "\u00fcber\u00a0\u03b8\u2030\u2065\u206a\U0001f600\U0010ffff";
  const std::string line = LineOnATerminal(Program(), [&] { Log(LogLevel::kInfo, text, {{"name", text}}); });
  EXPECT_THAT(line, HasSubstr(text + " name=" + text));
}

TEST_F(LogTest, MarksBytesThatAreNotUtf8) {
  // An end inside a character, a C1 of one byte, an overlong line break, an encoded surrogate, a code above the last
  // one.
  const std::string bytes = "a\x9b\xc0\x8a\xed\xa0\x80\xf4\x90\x80\x80z\xe2\x80";
  std::string marked = "a";
  for (int i = 0; i < 10; ++i) marked += "\ufffd";
  marked += "z\ufffd\ufffd";
  EXPECT_EQ(Object([&] { Log(LogLevel::kInfo, bytes, {{"path", bytes}}); })["path"], marked);
  const std::string line = LineOnATerminal(Program() + "Too", [&] { Log(LogLevel::kInfo, bytes); });
  EXPECT_THAT(line, HasSubstr(R"(a\ufffd\ufffd)"));
}

TEST_F(LogTest, SaysTheSameInJson) {
  const std::string text = "\u009b\u2028\u202e\U0001f600";
  EXPECT_EQ(Object([&] { Log(LogLevel::kInfo, text); })["message"], text);
}

}  // namespace
}  // namespace chainfleet
