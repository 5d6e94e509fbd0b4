#include "tests/support/forgetful_disk.h"

#include <gtest/gtest.h>

namespace chainfleet {
namespace {

bool Always() { return true; }

int SurvivorsOf(int seeds, const std::function<void(FileSystem*)>& writes, const std::string& path) {
  int survived = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    ForgetfulDisk disk("/data", static_cast<uint64_t>(seed));
    const auto files = disk.Mount(Always);
    writes(files.get());
    disk.LosePower();
    survived += files->Read(path).ok();
  }
  return survived;
}

TEST(ForgetfulDisk, KeepsAFileWhoseFolderWasSynced) {
  const auto write = [](FileSystem* files) {
    ASSERT_TRUE(files->WriteSynced("/data/a", "bytes").ok());
    ASSERT_TRUE(files->SyncFolder("/data").ok());
  };
  EXPECT_EQ(SurvivorsOf(20, write, "/data/a"), 20);
}

TEST(ForgetfulDisk, MayForgetAFileWhoseFolderWasNot) {
  const auto write = [](FileSystem* files) { ASSERT_TRUE(files->WriteSynced("/data/a", "bytes").ok()); };
  const int survived = SurvivorsOf(40, write, "/data/a");
  EXPECT_GT(survived, 0);
  EXPECT_LT(survived, 40);
}

TEST(ForgetfulDisk, MayForgetTheFolderOfASyncedFile) {
  const auto write = [](FileSystem* files) {
    ASSERT_TRUE(files->CreateFolders("/data/a/b").ok());
    ASSERT_TRUE(files->WriteSynced("/data/a/b/c", "bytes").ok());
    ASSERT_TRUE(files->SyncFolder("/data/a/b").ok());
    ASSERT_TRUE(files->SyncFolder("/data/a").ok());
  };
  const int survived = SurvivorsOf(40, write, "/data/a/b/c");
  EXPECT_GT(survived, 0);
  EXPECT_LT(survived, 40);
}

TEST(ForgetfulDisk, MayUndoARenameThatWasNotSynced) {
  const auto write = [](FileSystem* files) {
    ASSERT_TRUE(files->WriteSynced("/data/a", "bytes").ok());
    ASSERT_TRUE(files->SyncFolder("/data").ok());
    ASSERT_TRUE(files->RenameNew("/data/a", "/data/b").ok());
  };
  EXPECT_LT(SurvivorsOf(40, write, "/data/b"), 40);
  EXPECT_GT(SurvivorsOf(40, write, "/data/a"), 0);
}

TEST(ForgetfulDisk, ADeadProcessChangesNothing) {
  ForgetfulDisk disk("/data", 1);
  bool alive = true;
  const auto files = disk.Mount([&] { return alive; });
  int changes = 0;
  disk.BeforeEachChange([&] { alive = ++changes < 2; });
  EXPECT_TRUE(absl::IsUnavailable(files->WriteSynced("/data/a", "bytes"))) << "it dies half way";
  EXPECT_TRUE(absl::IsUnavailable(files->Remove("/data/a")));
  EXPECT_EQ(disk.Mount(Always)->Read("/data/a").value(), "by") << "and leaves what it wrote";
}

TEST(ForgetfulDisk, AFullDiskTakesNoBytes) {
  ForgetfulDisk disk("/data", 1);
  const auto files = disk.Mount(Always);
  disk.SetFull(true);
  EXPECT_EQ(ReasonOf(files->WriteSynced("/data/a", "bytes")), "DISK_FULL");
  EXPECT_EQ(files->ListFiles("/data").value(), std::vector<std::string>{"a"});
  disk.SetFull(false);
  EXPECT_TRUE(files->WriteSynced("/data/a", "bytes").ok());
}

}  // namespace
}  // namespace chainfleet
