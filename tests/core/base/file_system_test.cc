#include "core/base/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

namespace chainfleet {
namespace {

class FileSystemTest : public ::testing::Test {
 protected:
  FileSystemTest() { std::filesystem::create_directories(folder_); }
  ~FileSystemTest() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = ::testing::TempDir() + "file-system-" + std::to_string(::getpid());
  FileSystem* const files_ = RealFileSystem();
};

TEST_F(FileSystemTest, WritesReadsAndLists) {
  ASSERT_TRUE(files_->CreateFolders(folder_ + "/a/b").ok());
  ASSERT_TRUE(files_->WriteSynced(folder_ + "/a/b/x", std::string("a\0b", 3)).ok());
  EXPECT_EQ(files_->Read(folder_ + "/a/b/x").value(), std::string("a\0b", 3));
  EXPECT_EQ(files_->ReadRange(folder_ + "/a/b/x", 2, 10).value(), "b");
  EXPECT_EQ(files_->ReadRange(folder_ + "/a/b/x", 1, INT64_MAX).value(), std::string("\0b", 2));
  EXPECT_EQ(files_->ReadRange(folder_ + "/a/b/x", 9, 1).value(), "");
  EXPECT_EQ(files_->SizeBytes(folder_ + "/a/b/x").value(), 3);
  EXPECT_THAT(*files_->ListFiles(folder_), ::testing::ElementsAre("a/b/x"));
  EXPECT_TRUE(files_->ListFiles(folder_ + "/none")->empty());
  EXPECT_TRUE(files_->SyncFolder(folder_ + "/a").ok());
}

TEST_F(FileSystemTest, CreatesEveryMissingFolderAbove) {
  EXPECT_TRUE(CreateFoldersSynced(folder_ + "/a/b/c").ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder_ + "/a/b/c"));
  EXPECT_TRUE(CreateFoldersSynced(folder_ + "/a/b/c/").ok()) << "what is there stays";
  ASSERT_TRUE(files_->WriteSynced(folder_ + "/file", "x").ok());
  const absl::Status below_a_file = CreateFoldersSynced(folder_ + "/file/data");
  EXPECT_FALSE(below_a_file.ok());
  EXPECT_THAT(std::string(below_a_file.message()), ::testing::HasSubstr(folder_ + "/file/data"));
}

TEST_F(FileSystemTest, RenameNeverReplaces) {
  ASSERT_TRUE(files_->WriteSynced(folder_ + "/from", "new").ok());
  ASSERT_TRUE(files_->WriteSynced(folder_ + "/to", "old").ok());
  EXPECT_EQ(files_->RenameNew(folder_ + "/from", folder_ + "/to").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(files_->Read(folder_ + "/to").value(), "old");
  ASSERT_TRUE(files_->Remove(folder_ + "/to").ok());
  EXPECT_TRUE(files_->RenameNew(folder_ + "/from", folder_ + "/to").ok());
  EXPECT_EQ(files_->Read(folder_ + "/to").value(), "new");
}

TEST_F(FileSystemTest, MissingFilesAreNamed) {
  const absl::Status status = files_->Read(folder_ + "/nothing").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("/nothing"));
}

// Chains wait for a store that is unavailable; any other code would count against them.
TEST_F(FileSystemTest, AHostWithoutDescriptorsIsTheStoresFault) {
  ASSERT_TRUE(files_->WriteSynced(folder_ + "/there", "x").ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status read = files_->Read(folder_ + "/there").status();
  const absl::Status written = files_->WriteSynced(folder_ + "/new", "x");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const absl::Status& status : {read, written}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(ReasonOf(status), kStoreFault);
  }
}

TEST_F(FileSystemTest, AFullDeviceIsResourceExhausted) {
  const absl::Status status = files_->WriteSynced("/dev/full", "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "DISK_FULL");
}

TEST_F(FileSystemTest, ALockIsHeldOnceAndFreedAtTheEnd) {
  auto lock = FileLock::Acquire(folder_ + "/lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(ReasonOf(FileLock::Acquire(folder_ + "/lock").status()), "IN_USE");
  lock->reset();
  EXPECT_TRUE(FileLock::Acquire(folder_ + "/lock").ok());
}

}  // namespace
}  // namespace chainfleet
