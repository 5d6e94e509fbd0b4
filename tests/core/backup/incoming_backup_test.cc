#include "core/store/backup/incoming_backup.h"

#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

class IncomingBackupTest : public testing::Test {
 protected:
  ~IncomingBackupTest() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::remove(folder_ + ".lock");
  }
  std::unique_ptr<IncomingBackup> Open() { return IncomingBackup::Open(folder_).value(); }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/incoming-backup-", getpid());
};

TEST_F(IncomingBackupTest, FilesAreAsTheyCameInParts) {
  const auto backup = Open();
  ASSERT_TRUE(backup->Begin("objects/a/1", 6).ok());
  ASSERT_TRUE(backup->Add("one").ok());
  ASSERT_TRUE(backup->Add("two").ok());
  ASSERT_TRUE(backup->Begin("state-1.db", 0).ok());
  ASSERT_TRUE(backup->Begin("manifest.json", 2).ok());
  ASSERT_TRUE(backup->Add("{}").ok());
  ASSERT_TRUE(backup->End().ok());
  EXPECT_EQ(RealFileSystem()->Read(folder_ + "/objects/a/1").value(), "onetwo");
  EXPECT_EQ(RealFileSystem()->SizeBytes(folder_ + "/state-1.db").value(), 0);
  EXPECT_EQ(RealFileSystem()->Read(folder_ + "/manifest.json").value(), "{}");
}

TEST_F(IncomingBackupTest, OnlyFilesOfABackupMayCome) {
  const auto backup = Open();
  for (const char* file : {"", "/etc/passwd", "../x", "objects/../../x", "objects//x", "objects/", "state.db", "lock",
                           "manifest.json/x", "tls.key"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(backup->Begin(file, 1))) << file;
  }
}

TEST_F(IncomingBackupTest, AFileHasTheBytesThatItsHeaderSays) {
  const auto backup = Open();
  EXPECT_TRUE(absl::IsInvalidArgument(backup->Add("x"))) << "before a file";
  EXPECT_TRUE(absl::IsInvalidArgument(backup->Begin("objects/a", -1)));
  ASSERT_TRUE(backup->Begin("objects/a", 3).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(backup->Add("four")));
  ASSERT_TRUE(backup->Add("12").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(backup->Begin("objects/b", 1))) << "one byte of the first is missing";
  EXPECT_TRUE(absl::IsInvalidArgument(backup->End()));
  ASSERT_TRUE(backup->Add("3").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(backup->Begin("objects/a", 1))) << "it came already";
}

TEST_F(IncomingBackupTest, ABackupBeyondTheDiskIsRefusedBeforeItComes) {
  const absl::Status refused = Open()->Begin("objects/a", int64_t{1} << 60);
  EXPECT_EQ(ReasonOf(refused), "DISK_FULL") << refused;
}

TEST_F(IncomingBackupTest, OneComesAtATimeAndAnUnfinishedOneLeavesNothing) {
  auto first = Open();
  ASSERT_TRUE(first->Begin("objects/a", 3).ok());
  EXPECT_EQ(ReasonOf(IncomingBackup::Open(folder_).status()), "IN_USE");
  first.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_));
  std::filesystem::create_directories(folder_ + "/objects");
  std::ofstream(folder_ + "/objects/a") << "of a process that died";
  EXPECT_TRUE(Open()->Begin("objects/a", 0).ok());
}

}  // namespace
}  // namespace chainfleet
