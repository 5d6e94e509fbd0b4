#include "core/base/spool_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/file_system.h"

namespace chainfleet {
namespace {

class SpoolFileTest : public ::testing::Test {
 protected:
  SpoolFileTest() { std::filesystem::create_directories(folder_); }
  ~SpoolFileTest() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = ::testing::TempDir() + "spool-file-" + std::to_string(::getpid());
};

TEST_F(SpoolFileTest, HoldsBytesWithoutAName) {
  const auto file = SpoolFile::Make(folder_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->Write(6, "second", 6).ok());
  EXPECT_TRUE(file->Write(0, "first,", 6).ok());
  char read[4];
  EXPECT_TRUE(file->Read(2, read, 4).ok());
  EXPECT_EQ(std::string(read, 4), "rst,");
  EXPECT_FALSE(file->Read(10, read, 4).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(SpoolFileTest, IsASourceOfItsBytes) {
  const auto file = SpoolFile::Make(folder_);
  ASSERT_TRUE(file->Write(0, "first, second", 13).ok());
  EXPECT_EQ(file->Content(13).ReadAll().value(), "first, second");
  EXPECT_TRUE(absl::IsDataLoss(file->Content(14).ReadAll().status()));
  ASSERT_TRUE(RealFileSystem()->WriteSynced(folder_ + "/copy", file->Content(5)).ok());
  EXPECT_EQ(RealFileSystem()->Read(folder_ + "/copy").value(), "first");
}

TEST_F(SpoolFileTest, NamesTheFolderThatIsNotThere) {
  const auto file = SpoolFile::Make(folder_ + "/none");
  EXPECT_TRUE(absl::IsFailedPrecondition(file.status()));
  EXPECT_THAT(std::string(file.status().message()), ::testing::HasSubstr(folder_ + "/none: No such file"));
}

}  // namespace
}  // namespace chainfleet
