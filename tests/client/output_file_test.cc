#include "client/cli/output_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(WriteOutputFile, ReplacesWhatWasThereAndLeavesNothingBeside) {
  const std::string path = ::testing::TempDir() + "/output_file_test";
  ASSERT_TRUE(WriteOutputFile(path, "first, longer").ok());
  ASSERT_TRUE(WriteOutputFile(path, std::string("a\0b", 3)).ok());
  EXPECT_EQ(Content(path), std::string("a\0b", 3));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  std::filesystem::remove(path);
}

TEST(WriteOutputFile, WritesWhatALinkNames) {
  const std::string path = ::testing::TempDir() + "linked", link = path + ".link";
  ASSERT_TRUE(WriteOutputFile(path, "old").ok());
  std::filesystem::remove(link);
  std::filesystem::create_symlink(path, link);
  ASSERT_TRUE(WriteOutputFile(link, "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(Content(path), "new");
}

TEST(MakeEmptyOutputFolder, RefusesAFolderThatHoldsFiles) {
  const std::string folder = ::testing::TempDir() + "exported";
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(MakeEmptyOutputFolder(folder).ok());
  EXPECT_TRUE(MakeEmptyOutputFolder(folder).ok());
  ASSERT_TRUE(WriteOutputFile(folder + "/old", "x").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(MakeEmptyOutputFolder(folder)));
}

TEST(WriteOutputFile, WritesDevicesInPlace) {
  EXPECT_TRUE(WriteOutputFile("/dev/null", "x").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(WriteOutputFile("/dev/full", "x").code(), absl::StatusCode::kResourceExhausted);
}

TEST(WriteOutputFile, NamesAPathThatCannotBeWritten) {
  const absl::Status status = WriteOutputFile("/no/such/folder/file", "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("/no/such/folder/file"));
}

}  // namespace
}  // namespace chainfleet
