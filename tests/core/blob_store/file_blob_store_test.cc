#include "core/store/blob_store/file_blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace chainfleet {
namespace {

// The real disk with a number of bytes left, and a count of folder syncs.
class SmallDisk final : public FileSystem {
 public:
  int64_t bytes_left = INT64_MAX;
  std::atomic<int> folder_syncs = 0;

  absl::Status WriteSynced(const std::string& path, const std::string& bytes) override {
    const auto fits = static_cast<size_t>(std::min<int64_t>(bytes_left, static_cast<int64_t>(bytes.size())));
    CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->WriteSynced(path, bytes.substr(0, fits)));
    if (fits < bytes.size()) return WithReason(absl::ResourceExhaustedError("no space left"), "DISK_FULL");
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Read(const std::string& path) const override { return RealFileSystem()->Read(path); }
  absl::StatusOr<std::string> ReadRange(const std::string& path, int64_t offset, int64_t length) const override {
    return RealFileSystem()->ReadRange(path, offset, length);
  }
  absl::StatusOr<int64_t> SizeBytes(const std::string& path) const override {
    return RealFileSystem()->SizeBytes(path);
  }
  absl::Status RenameNew(const std::string& from, const std::string& to) override {
    return RealFileSystem()->RenameNew(from, to);
  }
  absl::Status SyncFolder(const std::string& path) override {
    ++folder_syncs;
    return RealFileSystem()->SyncFolder(path);
  }
  absl::Status CreateFolders(const std::string& path) override { return RealFileSystem()->CreateFolders(path); }
  absl::Status Remove(const std::string& path) override { return RealFileSystem()->Remove(path); }
  absl::StatusOr<std::vector<std::string>> ListFiles(const std::string& folder) const override {
    return RealFileSystem()->ListFiles(folder);
  }
};

class FileBlobStoreTest : public ::testing::Test {
 protected:
  ~FileBlobStoreTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = ::testing::TempDir() + "file-blobs-" + std::to_string(::getpid());
  SmallDisk disk_;
};

TEST_F(FileBlobStoreTest, AFullDiskLeavesNothingBehindAndTheRestReadable) {
  auto store = FileBlobStore::Open(&disk_, folder_).value();
  ASSERT_TRUE(store->Put("a/kept", "committed").ok());
  disk_.bytes_left = 3;
  const absl::Status status = store->Put("a/new", "too long");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "DISK_FULL");
  EXPECT_THAT(*store->List(""), ::testing::ElementsAre("a/kept"));
  EXPECT_EQ(store->Get("a/kept").value(), "committed");
  EXPECT_EQ(disk_.ListFiles(folder_)->size(), 1u) << "a temp file was left";
  disk_.bytes_left = 100;
  EXPECT_TRUE(store->Put("a/new", "too long").ok());
}

TEST_F(FileBlobStoreTest, RemovesTempFilesOfARunThatDied) {
  ASSERT_TRUE(FileBlobStore::Open(&disk_, folder_).ok());
  std::ofstream(folder_ + "/.tmp/0") << "half";
  auto store = FileBlobStore::Open(&disk_, folder_).value();
  EXPECT_TRUE(disk_.ListFiles(folder_)->empty());
  EXPECT_TRUE(store->Put("a/b", "x").ok());
}

TEST_F(FileBlobStoreTest, ConcurrentPutsAreAllDurableAndShareFolderSyncs) {
  auto store = FileBlobStore::Open(&disk_, folder_).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) EXPECT_TRUE(store->Put("a/" + std::to_string(100 * t + i), "x").ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->List("a/")->size(), 200u);
  EXPECT_LE(disk_.folder_syncs, 200 + 16) << "at most one a put, and those of new folders";
}

}  // namespace
}  // namespace chainfleet
