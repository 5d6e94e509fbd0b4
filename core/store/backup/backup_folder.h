// The folder of a backup:
//
//   manifest.json        format, versions, names and SHA-256 of the next two; written last
//   state-DIGEST.db      the state (core/store/state_store/state_copy.h)
//   objects-DIGEST.txt   a line for each object: SHA-256, size, name
//   objects/NAME         the objects
//
// Files of an earlier or an unfinished backup may be there, too; the manifest does not name them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/base/status.h"
#include "core/domain/draw.h"

namespace chainfleet {

struct BackupManifest {
  std::string server_version, engine, incarnation, created_at;
  BlobRef state, list;  // files of the folder
  int64_t objects = 0, object_bytes = 0;
};

// FAILED_PRECONDITION: there is no finished backup in the folder, or a newer release made it. DATA_LOSS.
absl::StatusOr<BackupManifest> ReadBackupManifest(const std::string& folder);

// Makes all files of the disk durable and the backup in `folder` the one that `manifest` describes, whose files are
// there. Then removes files that it does not have.
absl::Status FinishBackup(const std::string& folder, const BackupManifest& manifest);

struct BackupTotals {
  int64_t objects = 0, bytes = 0;
};
using BackupVisitor = std::function<absl::Status(const BlobRef&)>;

// Writes the list of objects at `path`: those that `list` passes to its visitor. FAILED_PRECONDITION, naming the path.
absl::StatusOr<BackupTotals> WriteBackupList(const std::string& path,
                                             const std::function<absl::Status(const BackupVisitor&)>& list);

// Calls `visit` with each object that the list at `path` has, until it returns an error. DATA_LOSS: a line is damaged.
absl::Status VisitBackupList(const std::string& path, const BackupVisitor& visit);

// The path of a file in the folder. INVALID_ARGUMENT: a backup has no such file.
absl::StatusOr<std::string> BackupFilePath(const std::string& folder, const std::string& file);

// The path of an object in the folder. INVALID_ARGUMENT: the name would lead out of it.
absl::StatusOr<std::string> BackupObjectPath(const std::string& folder, const std::string& name);

// Size and SHA-256 of the file, without a name.
absl::StatusOr<BlobRef> DescribeFile(const std::string& path);

// DATA_LOSS, naming the file, if it is missing or differs in size or SHA-256.
absl::Status CheckBackupFile(const std::string& path, const BlobRef& expected);

// Checks manifest, state and list, then each object, and calls `take` with each after its check. Errors as above.
absl::StatusOr<BackupManifest> ReadBackup(
    const std::string& folder, const std::function<absl::Status(const BlobRef&, const std::string& path)>& take);

}  // namespace chainfleet
