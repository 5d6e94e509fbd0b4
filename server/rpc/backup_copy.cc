#include "server/rpc/backup_copy.h"

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"
#include "core/base/ids.h"
#include "core/base/version.h"
#include "core/store/backup/backup_folder.h"
#include "core/store/state_store/state_copy.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

constexpr char kStateFile[] = "state.db", kListFile[] = "objects.txt";

// The files of one call, in a folder of their own, and the objects that they name.
class BackupCopy {
 public:
  BackupCopy(const ServiceParts& parts, const std::string& id)
      : parts_(parts),
        id_(id),
        folder_(absl::StrCat(BackupFolder(parts.data_directory), "/", id)),
        hold_(parts.garbage->Hold()) {}
  ~BackupCopy() {
    std::error_code ignored;  // the next start of the server removes what is left
    std::filesystem::remove_all(folder_, ignored);
  }

  absl::StatusOr<v1::BackupCopy> Make() {
    CHAINFLEET_RETURN_IF_ERROR(CreateFoldersSynced(folder_));
    const std::string state = absl::StrCat(folder_, "/", kStateFile), list = absl::StrCat(folder_, "/", kListFile);
    CHAINFLEET_RETURN_IF_ERROR(CopyState(parts_.state_address, state, parts_.state_password));
    v1::BackupCopy copy;
    CHAINFLEET_ASSIGN_OR_RETURN(const BackupTotals totals,
                                WriteBackupList(list, [&](const auto& visit) { return VisitObjects(state, visit); }));
    copy.set_server_version(kVersion);
    copy.set_engine(absl::StartsWith(parts_.state_address, "postgres") ? "postgresql" : "sqlite");
    copy.set_incarnation(parts_.state->incarnation());
    CHAINFLEET_RETURN_IF_ERROR(Describe(kStateFile, state, copy.mutable_state()));
    CHAINFLEET_RETURN_IF_ERROR(Describe(kListFile, list, copy.mutable_list()));
    copy.set_objects(totals.objects);
    copy.set_object_bytes(totals.bytes);
    return copy;
  }

 private:
  absl::Status Describe(const std::string& file, const std::string& path, v1::BlobRef* ref) const {
    CHAINFLEET_ASSIGN_OR_RETURN(const BlobRef found, DescribeFile(path));
    ref->set_name(absl::StrCat(id_, "/", file));
    ref->set_size_bytes(found.size_bytes);
    ref->set_sha256(found.sha256);
    return absl::OkStatus();
  }

  const ServiceParts parts_;
  const std::string id_, folder_;
  const std::shared_ptr<void> hold_;
};

}  // namespace

void ServeBackup(const ServiceParts& parts, const std::string& id,
                 const std::shared_ptr<StreamFeed<v1::BackupCopy>>& feed) {
  const auto copy = std::make_shared<BackupCopy>(parts, id);
  absl::StatusOr<v1::BackupCopy> made = copy->Make();
  if (!made.ok()) return feed->End(made.status());
  feed->OnCancelled([copy] {});  // the feed keeps the copy until the stream ends
  feed->Send(*std::move(made));
}

}  // namespace chainfleet
