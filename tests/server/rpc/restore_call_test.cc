// AccessService.Restore up to the moment when the process is told.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "chainfleet/v1/access.grpc.pb.h"
#include "core/base/file_system.h"
#include "core/store/backup/backup_folder.h"
#include "core/store/draw_codec/sha256.h"
#include "core/store/state_store/state_copy.h"
#include "tests/server/rpc/running_server.h"

namespace chainfleet {
namespace {

std::atomic<int> backups_that_came = 0;

// Sends backups to a server that holds nothing.
class RestoreTest : public RunningServer {
 protected:
  using Files = std::map<std::string, std::string>;  // contents by path, in the order of the upload

  RestoreTest()
      : RunningServer({{"admin", "default", Role::kAdmin}, {"theirs", "vision", Role::kAdmin}, {"user", "vision"}}) {
    token_ = "admin";
    backups_that_came = 0;
    std::signal(kBackupCame, [](int) { ++backups_that_came; });
  }
  ~RestoreTest() override {
    std::signal(kBackupCame, SIG_IGN);  // it may come after the answer
  }

  // The backup of a server that holds nothing, with one object all the same; or with other bytes as its state.
  Files WholeBackup(const std::string& state = "") const {
    const std::string folder = folder_ + "/whole";
    EXPECT_TRUE(CreateFoldersSynced(folder).ok());
    EXPECT_TRUE(CopyState(database_.path(), folder + "/state-1.db").ok());
    if (!state.empty()) {
      EXPECT_TRUE(RealFileSystem()->WriteSynced(folder + "/state-1.db", state).ok());
    }
    BackupManifest manifest{.server_version = "1", .engine = "sqlite", .objects = 1, .object_bytes = 10};
    EXPECT_TRUE(WriteBackupList(folder + "/objects-1.txt", [](const BackupVisitor& add) {
                  return add({"store/x", std::ssize(kDrawBytes), Sha256Hex(kDrawBytes)});
                }).ok());
    manifest.state = Described(folder, "state-1.db");
    manifest.list = Described(folder, "objects-1.txt");
    EXPECT_TRUE(FinishBackup(folder, manifest).ok());
    Files files = {{"objects/store/x", kDrawBytes}};
    for (const char* file : {"state-1.db", "objects-1.txt", "manifest.json"}) {
      files[file] = RealFileSystem()->Read(folder + "/" + file).value();
    }
    return files;
  }
  static BlobRef Described(const std::string& folder, const std::string& file) {
    BlobRef ref = DescribeFile(folder + "/" + file).value();
    ref.name = file;
    return ref;
  }
  absl::Status Send(const Files& files) {
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    v1::RestoreResponse response;
    const auto writer = access_->Restore(&context, &response);
    v1::RestoreRequest request;
    for (const auto& [file, bytes] : files) {
      request.mutable_header()->set_file(file);
      request.mutable_header()->set_size_bytes(std::ssize(bytes));
      writer->Write(request);
      request.set_data(bytes);
      writer->Write(request);
    }
    writer->WritesDone();
    return FromGrpc(writer->Finish());
  }
  bool LeavesFiles() const { return std::filesystem::exists(RestoreFolder(folder_)); }
  bool HasState() const { return std::filesystem::exists(RestoredState(folder_)); }

  const std::unique_ptr<v1::AccessService::Stub> access_ = v1::AccessService::NewStub(channel_);
};

TEST_F(RestoreTest, AWholeBackupIsStoredAndTheProcessIsToldOnce) {
  const Files backup = WholeBackup();
  const absl::Status sent = Send(backup);
  ASSERT_TRUE(sent.ok()) << sent;
  EXPECT_EQ(blobs_.Get("store/x").value(), kDrawBytes);
  EXPECT_TRUE(CheckHoldsNothing(RestoredState(folder_)).ok()) << "a store that can be opened";
  EXPECT_FALSE(LeavesFiles());
  while (backups_that_came == 0) continue;  // a moment after the answer
  EXPECT_EQ(ReasonOf(Send(backup)), "IN_USE") << "the process still has to take the first one";
  EXPECT_EQ(backups_that_came, 1);
}

TEST_F(RestoreTest, ABackupThatIsNotWholeLeavesNothing) {
  const Files whole = WholeBackup();
  const auto without = [&](const std::string& file) {
    Files files = whole;
    files.erase(file);
    return Send(files);
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(without("manifest.json")));
  EXPECT_TRUE(absl::IsDataLoss(without("state-1.db")));
  EXPECT_TRUE(absl::IsDataLoss(without("objects/store/x")));
  Files changed = whole;
  changed["objects/store/x"][0] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(Send(changed)));
  EXPECT_FALSE(Send(WholeBackup("no database")).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Send({{"../x", "out of the folder"}})));
  EXPECT_TRUE(absl::IsInvalidArgument(Send({})));
  EXPECT_FALSE(LeavesFiles() || HasState());
  EXPECT_EQ(backups_that_came, 0);
  EXPECT_TRUE(Send(whole).ok()) << "the server takes another one";
}

TEST_F(RestoreTest, AServerThatHoldsSomethingIsNotReplaced) {
  const Files backup = WholeBackup();
  PutDigits();
  EXPECT_EQ(ReasonOf(Send(backup)), "NOT_EMPTY");
  ASSERT_TRUE(CreateJob(GaussianJob("walk")).ok());
  EXPECT_EQ(ReasonOf(Send(backup)), "NOT_EMPTY");
  EXPECT_FALSE(LeavesFiles() || HasState());
  EXPECT_EQ(backups_that_came, 0);
}

TEST_F(RestoreTest, OnlyAdminsOfTheFleetMay) {
  const Files backup = WholeBackup();
  for (const char* token : {"user", "theirs"}) {
    token_ = token;
    EXPECT_EQ(ReasonOf(Send(backup)), "NOT_ALLOWED") << token;
  }
  EXPECT_FALSE(LeavesFiles() || HasState());
}

}  // namespace
}  // namespace chainfleet
