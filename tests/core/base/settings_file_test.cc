#include "core/base/settings_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace chainfleet {
namespace {

using testing::HasSubstr;

class SettingsFileTest : public testing::Test {
 protected:
  ~SettingsFileTest() override { std::filesystem::remove(path_); }
  absl::Status Check(const std::string& content) const {
    std::ofstream(path_) << content;
    return CheckSettingsAreTogether(path_);
  }
  // The error `said` of a parser of `content`, with its line.
  std::string WithLine(const std::string& content, const std::string& said) const {
    std::ofstream(path_) << content;
    return WithLineOfSettings(path_, said);
  }

  const std::string path_ = testing::TempDir() + "settings-" + std::to_string(getpid());
};

TEST_F(SettingsFileTest, LinesOfOneFlagMayFollowEachOther) {
  EXPECT_TRUE(Check("tenant-jobs = 100\n# of team a\n\ntenant-jobs = \"a=5\"\nthreads=2\n").ok());
}

TEST_F(SettingsFileTest, ALaterLineOfAFlagIsRefusedBecauseItWouldBeIgnored) {
  const absl::Status status = Check("tenant-jobs = 100\nthreads = 2\ntenant-jobs = \"a=5\"\n");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(":3: line 1 gives tenant-jobs a value, too: keep one of the lines"));
}

TEST_F(SettingsFileTest, LinesOfAListNameNoFlags) {
  const std::string lists =
      "tenant-jobs = [64,  # others\n  \"a=5\",\n\n  \"b=6\"]\ntenant-chains = [8,\n  \"a=5\"\n]\n";
  const absl::Status together = Check(lists);
  EXPECT_TRUE(together.ok()) << together;
  EXPECT_THAT(std::string(Check(lists + "tenant-jobs = 5\n").message()), HasSubstr(":8: line 4 gives tenant-jobs"));
}

TEST_F(SettingsFileTest, ABracketInACommentBeginsNoList) {
  EXPECT_FALSE(Check("threads = 2  # [1 to 8\nlease = 15s\nthreads = 3\n").ok());
  EXPECT_FALSE(Check("threads = [  # open\nlease = 15s\nthreads = 3\n").ok()) << "CLI11 takes [ alone as a value";
}

TEST_F(SettingsFileTest, AnErrorGetsItsLine) {
  const std::pair<const char*, const char*> kCases[] = {{"lease = 15s\ntenant-jobs = team-a=many  # soon\n", ":2: "},
                                                        {"lease = 15s\ntenant-jobs = [64, \"team-a=many\"]\n", ":2: "},
                                                        {"tenant-jobs = [1,\n  \"team-a=many\",\n  \"b=1\"]\n", ":2: "},
                                                        {"tenant-jobs = 1\ntenant-jobs = 'team-a=many'\n", ":2: "}};
  const std::string said = "--tenant-jobs team-a=many: give N or TENANT=N, where N is an integer from 1 to 9";
  for (const auto& [content, line] : kCases) EXPECT_EQ(WithLine(content, said), path_ + line + said) << content;
  EXPECT_EQ(WithLine("tenant-jobs = 2\n", said), said) << "it is from the command line";
  EXPECT_EQ(WithLine("lease = 15s\nthreds = 2\n", "INI was not able to parse threds"),
            path_ + ":2: no flag is named threds");
}

TEST_F(SettingsFileTest, AMissingFileGivesNoFlagTwice) { EXPECT_TRUE(CheckSettingsAreTogether("/nonexistent").ok()); }

}  // namespace
}  // namespace chainfleet
