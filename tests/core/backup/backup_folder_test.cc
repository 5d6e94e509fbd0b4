#include "core/store/backup/backup_folder.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/file_system.h"
#include "core/store/draw_codec/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BackupFolderTest : public testing::Test {
 protected:
  BackupFolderTest() {
    std::filesystem::remove_all(folder_);
    manifest_ = {
        .server_version = "1.2.3", .engine = "sqlite", .incarnation = "s1", .created_at = "2026-11-28T00:00:00Z"};
    manifest_.state = Write("state-1.db", "the state");
    Write("objects/a/1", "one");
    Write("objects/b", "two");
    manifest_.list = List("objects-1.txt", {{"a/1", 3, Sha256Hex("one")}, {"b", 3, Sha256Hex("two")}});
    manifest_.objects = 2;
    manifest_.object_bytes = 6;
  }
  ~BackupFolderTest() override { std::filesystem::remove_all(folder_); }

  BlobRef Write(const std::string& file, const std::string& bytes) {
    const std::filesystem::path path = folder_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return {file, static_cast<int64_t>(bytes.size()), Sha256Hex(bytes)};
  }
  BlobRef List(const std::string& file, const std::vector<BlobRef>& objects) {
    const auto totals = WriteBackupList(folder_ + "/" + file, [&](const BackupVisitor& add) {
      for (const BlobRef& object : objects) EXPECT_TRUE(add(object).ok());
      return absl::OkStatus();
    });
    EXPECT_EQ(totals->objects, std::ssize(objects));
    return Write(file, RealFileSystem()->Read(folder_ + "/" + file).value());
  }
  // The names of the objects, or the error.
  absl::StatusOr<std::vector<std::string>> Read() {
    std::vector<std::string> names;
    CHAINFLEET_RETURN_IF_ERROR(ReadBackup(folder_, [&](const BlobRef& object, const std::string&) {
                                 names.push_back(object.name);
                                 return absl::OkStatus();
                               }).status());
    return names;
  }
  void ExpectDamaged(const std::string& what) {
    const absl::Status status = Read().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }

  const std::string folder_ = testing::TempDir() + "backup-folder-" + std::to_string(::getpid());
  BackupManifest manifest_;
};

TEST_F(BackupFolderTest, IsABackupOnceItHasAManifest) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Read().status()));
  ASSERT_TRUE(FinishBackup(folder_, manifest_).ok());
  EXPECT_THAT(*Read(), ElementsAre("a/1", "b"));
  const BackupManifest read = ReadBackupManifest(folder_).value();
  EXPECT_EQ(std::tie(read.server_version, read.engine, read.incarnation, read.created_at, read.state, read.list),
            std::tie(manifest_.server_version, manifest_.engine, manifest_.incarnation, manifest_.created_at,
                     manifest_.state, manifest_.list));
  EXPECT_EQ(read.objects, 2);
  EXPECT_EQ(read.object_bytes, 6);
}

TEST_F(BackupFolderTest, DropsWhatTheNewestBackupDoesNotHave) {
  ASSERT_TRUE(FinishBackup(folder_, manifest_).ok());
  Write("mine.txt", "not of the backup");
  manifest_.state = Write("state-2.db", "later");
  manifest_.list = List("objects-2.txt", {{"b", 3, Sha256Hex("two")}});
  ASSERT_TRUE(FinishBackup(folder_, manifest_).ok());
  EXPECT_THAT(RealFileSystem()->ListFiles(folder_).value(),
              ElementsAre("manifest.json", "mine.txt", "objects-2.txt", "objects/b", "state-2.db"));
}

TEST_F(BackupFolderTest, NamesWhatIsDamaged) {
  ASSERT_TRUE(FinishBackup(folder_, manifest_).ok());
  Write("objects/b", "tw");
  ExpectDamaged("objects/b has 2 bytes, it had 3");
  Write("objects/b", "tWo");
  ExpectDamaged("objects/b was changed");
  std::filesystem::remove(folder_ + "/objects/b");
  ExpectDamaged("objects/b is missing");
  Write("objects-1.txt", "");
  ExpectDamaged("objects-1.txt has 0 bytes");
  Write("state-1.db", "the State");
  ExpectDamaged("state-1.db was changed");
  Write("manifest.json", "{\"format\": 1}");
  ExpectDamaged("manifest.json cannot be read");
  Write("manifest.json", "{\"format\": 2}");
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("use a newer release"));
}

TEST_F(BackupFolderTest, NoNameLeadsOutOfTheFolder) {
  for (const char* name : {"", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/."}) {
    EXPECT_TRUE(absl::IsInvalidArgument(BackupObjectPath("/f", name).status())) << name;
    manifest_.list = List("objects-1.txt", {{name, 1, Sha256Hex("x")}});
    ASSERT_TRUE(absl::IsDataLoss(FinishBackup(folder_, manifest_))) << name;
  }
  EXPECT_EQ(BackupObjectPath("/f", "a/b-1.x").value(), "/f/objects/a/b-1.x");
  BackupManifest outside = manifest_;
  outside.state.name = "../state.db";
  outside.list = List("objects-1.txt", {});
  ASSERT_TRUE(FinishBackup(folder_, outside).ok());
  ExpectDamaged("manifest.json cannot be read");
}

}  // namespace
}  // namespace chainfleet
