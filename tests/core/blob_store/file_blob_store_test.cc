#include "core/store/blob_store/file_blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "core/base/mutex.h"
#include "core/store/blob_store/encrypted_blob_store.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "tests/support/forgetful_disk.h"

namespace chainfleet {
namespace {

// The real disk with a limited number of bytes. Tracks the state after a loss of power.
class FrailDisk final : public FileSystem {
 public:
  int64_t bytes_left = INT64_MAX;
  absl::Status sync_status;  // for folders
  absl::Status read_status;

  // Holds started folder syncs until `renames` renames were made in all.
  void HoldSyncsUntil(int renames) {
    MutexLock lock(&mutex_);
    awaited_renames_ = renames;
  }
  int renames() const {
    MutexLock lock(&mutex_);
    return renames_;
  }
  int replaced() const {
    MutexLock lock(&mutex_);
    return replaced_;
  }
  int folder_syncs() const {
    MutexLock lock(&mutex_);
    return folder_syncs_;
  }
  bool IsDurable(const std::string& path) const {
    MutexLock lock(&mutex_);
    return durable_.contains(path);
  }

  absl::Status WriteSynced(const std::string& path, const ByteSource& content) override {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, content.ReadAll());
    const auto fits = static_cast<size_t>(std::min<int64_t>(bytes_left, static_cast<int64_t>(bytes.size())));
    CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->WriteSynced(path, bytes.substr(0, fits)));
    if (fits < bytes.size()) return WithReason(absl::ResourceExhaustedError("no space left"), "DISK_FULL");
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Read(const std::string& path) const override {
    if (!read_status.ok()) return read_status;
    return RealFileSystem()->Read(path);
  }
  absl::StatusOr<std::string> ReadRange(const std::string& path, int64_t offset, int64_t length) const override {
    if (!read_status.ok()) return read_status;
    return RealFileSystem()->ReadRange(path, offset, length);
  }
  absl::StatusOr<int64_t> SizeBytes(const std::string& path) const override {
    return RealFileSystem()->SizeBytes(path);
  }
  absl::Status RenameNew(const std::string& from, const std::string& to) override {
    CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->RenameNew(from, to));
    MutexLock lock(&mutex_);
    ++renames_;
    renamed_.insert(to);
    changed_.SignalAll();
    return absl::OkStatus();
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->Rename(from, to));
    MutexLock lock(&mutex_);
    ++replaced_;
    renamed_.insert(to);
    return absl::OkStatus();
  }
  absl::Status SyncFolder(const std::string& path) override {
    MutexLock lock(&mutex_);
    ++folder_syncs_;
    if (!sync_status.ok()) return sync_status;
    const std::set<std::string> seen = renamed_;  // this sync need not cover later renames
    while (renames_ < awaited_renames_) changed_.Wait(&mutex_);
    for (const std::string& file : seen) {
      if (file.starts_with(path + "/")) durable_.insert(file);
    }
    return absl::OkStatus();
  }
  absl::Status CreateFolders(const std::string& path) override { return RealFileSystem()->CreateFolders(path); }
  absl::Status Remove(const std::string& path) override { return RealFileSystem()->Remove(path); }
  absl::Status RemoveEmptyFolder(const std::string& path) override { return RealFileSystem()->RemoveEmptyFolder(path); }
  absl::Status VisitFiles(const std::string& folder, const FileVisitor& visit) const override {
    return RealFileSystem()->VisitFiles(folder, visit);
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  int awaited_renames_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  int renames_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  int replaced_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  int folder_syncs_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  std::set<std::string> renamed_ CHAINFLEET_GUARDED_BY(mutex_), durable_ CHAINFLEET_GUARDED_BY(mutex_);
};

class FileBlobStoreTest : public ::testing::Test {
 protected:
  ~FileBlobStoreTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = ::testing::TempDir() + "file-blobs-" + std::to_string(::getpid());
  FrailDisk disk_;
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

// A lost mount is the fault of the store. "No such object" would fail chains and would mark their draws as lost, and a
// folder created below the bare mount point would hide objects.
TEST_F(FileBlobStoreTest, AFolderThatIsGoneIsUnavailableAndNoObjectIsMissing) {
  auto store = FileBlobStore::Open(&disk_, folder_).value();
  ASSERT_TRUE(store->Put("a/kept", "committed").ok());
  const auto rename = [](const std::string& from, const std::string& to) { std::filesystem::rename(from, to); };
  rename(folder_, folder_ + "-away");
  for (const bool bare_mount_point : {false, true}) {
    if (bare_mount_point) std::filesystem::create_directory(folder_);
    for (const absl::Status& status :
         {store->Put("a/new", "x"), store->Put("b/new", "x"), store->Replace("a/kept", "x"), store->Delete("a/kept"),
          store->Get("a/kept").status(), store->GetRange("a/kept", 0, 1).status(), store->SizeBytes("a/kept").status(),
          store->List("").status(), store->ListPages("", [](const auto&) { return absl::OkStatus(); })}) {
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_EQ(ReasonOf(status), kStoreFault);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  std::filesystem::remove(folder_);
  rename(folder_ + "-away", folder_);
  EXPECT_EQ(store->Get("a/kept").value(), "committed");
  EXPECT_TRUE(store->Put("a/new", "x").ok());
  EXPECT_TRUE(absl::IsNotFound(store->Get("a/other").status()));
}

TEST_F(FileBlobStoreTest, TheLastObjectOfAFolderTakesItsFolderAlong) {
  auto store = FileBlobStore::Open(&disk_, folder_).value();
  for (const char* name : {"a/b/c/one", "a/b/two"}) ASSERT_TRUE(store->Put(name, "x").ok());
  ASSERT_TRUE(store->Delete("a/b/c/one").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a/b/c"));
  EXPECT_EQ(store->Get("a/b/two").value(), "x");
  ASSERT_TRUE(store->Delete("a/b/two").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a"));
  EXPECT_TRUE(store->Put("a/b/c/again", "x").ok());
}

TEST_F(FileBlobStoreTest, RemovesTempFilesOfARunThatDied) {
  ASSERT_TRUE(FileBlobStore::Open(&disk_, folder_).ok());
  std::ofstream(folder_ + "/.tmp/0") << "half";
  auto store = FileBlobStore::Open(&disk_, folder_).value();
  EXPECT_TRUE(disk_.ListFiles(folder_)->empty());
  EXPECT_TRUE(store->Put("a/b", "x").ok());
}

TEST_F(FileBlobStoreTest, ConcurrentPutsAreDurableWhenTheyReturnAndShareFolderSyncs) {
  auto store = FileBlobStore::Open(&disk_, folder_).value();
  ASSERT_TRUE(store->Put("a/first", "x").ok());  // creates the folder
  const int syncs_before = disk_.folder_syncs();
  constexpr int kRounds = 20, kPuts = 8;
  for (int round = 0; round < kRounds; ++round) {
    disk_.HoldSyncsUntil(disk_.renames() + kPuts);  // the first sync misses the renames of the others
    std::vector<std::thread> threads;
    for (int put = 0; put < kPuts; ++put) {
      threads.emplace_back([&, name = "a/" + std::to_string(round) + "-" + std::to_string(put)] {
        EXPECT_TRUE(store->Put(name, "x").ok());
        EXPECT_TRUE(disk_.IsDurable(folder_ + "/" + name)) << name;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_LT(disk_.folder_syncs() - syncs_before, kRounds * kPuts);
}

TEST_F(FileBlobStoreTest, ReplacingIsWholeOrNotAtAllAndDurable) {
  auto store = FileBlobStore::Open(&disk_, folder_).value();
  std::filesystem::create_directories(folder_ + "/a");
  std::ofstream(folder_ + "/a/digest") << "damaged";  // never synced
  disk_.bytes_left = 3;
  EXPECT_EQ(ReasonOf(store->Replace("a/digest", "whole")), "DISK_FULL");
  EXPECT_EQ(store->Get("a/digest").value(), "damaged");
  EXPECT_EQ(disk_.ListFiles(folder_)->size(), 1u) << "a temp file was left";
  disk_.bytes_left = 100;
  EXPECT_TRUE(store->Replace("a/digest", "whole").ok());
  EXPECT_EQ(store->Get("a/digest").value(), "whole");
  EXPECT_TRUE(disk_.IsDurable(folder_ + "/a/digest"));
}

TEST_F(FileBlobStoreTest, AnObjectThatCannotBeReadIsPutAgain) {
  auto store = FileBlobStore::Open(&disk_, folder_).value();
  ASSERT_TRUE(store->Put("a/digest", "whole").ok());
  disk_.read_status = absl::InternalError("input/output error");
  EXPECT_TRUE(PutContentAddressed(store.get(), "a/digest", "whole").ok());
  EXPECT_EQ(disk_.replaced(), 1);
}

TEST_F(FileBlobStoreTest, AFolderThatCannotBeSyncedFailsThePut) {
  auto store = FileBlobStore::Open(&disk_, folder_).value();
  ASSERT_TRUE(store->Put("a/first", "x").ok());
  disk_.sync_status = absl::InternalError("input/output error");
  EXPECT_EQ(store->Put("a/second", "x").code(), absl::StatusCode::kInternal);
  disk_.sync_status = absl::OkStatus();
  EXPECT_TRUE(store->Put("a/second", "x").ok()) << "tried again";
  EXPECT_TRUE(disk_.IsDurable(folder_ + "/a/second"));
}

TEST_F(FileBlobStoreTest, AnEncryptedObjectThatIsPutAgainIsDurable) {
  const std::shared_ptr<FileBlobStore> files = FileBlobStore::Open(&disk_, folder_).value();
  EncryptedBlobStore store(files, *ObjectKeys::Parse("first " + std::string(64, '1') + "\n"),
                           [](const std::string&) { return std::string("lab"); });
  const auto name_of = [](const std::string& content) {
    return SegmentObjectName("s1", {"lab-1", 0}, 1, Sha256Hex(content));
  };
  ASSERT_TRUE(store.Put(name_of("first"), std::string("first")).ok());  // creates the folder
  const std::string content = "draws", name = name_of(content);
  disk_.sync_status = absl::InternalError("input/output error");
  EXPECT_FALSE(store.Put(name, content).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/" + name));
  disk_.sync_status = absl::OkStatus();
  EXPECT_TRUE(store.Put(name, content).ok()) << "its other bytes have the same plaintext";
  EXPECT_TRUE(disk_.IsDurable(folder_ + "/" + name));
}

// This run created the store's own folder and all below it, and only the store synced them.
TEST(FileBlobStoreOnAForgetfulDisk, PutObjectsSurviveALossOfPower) {
  for (uint64_t seed = 0; seed < 32; ++seed) {
    ForgetfulDisk disk("/data", seed);
    const auto files = disk.Mount([] { return true; });
    ASSERT_TRUE(FileBlobStore::Open(files.get(), "/data/blobs").value()->Put("a/b/c", "bytes").ok());
    disk.LosePower();
    EXPECT_EQ(FileBlobStore::Open(files.get(), "/data/blobs").value()->Get("a/b/c").value_or("gone"), "bytes") << seed;
  }
}

}  // namespace
}  // namespace chainfleet
