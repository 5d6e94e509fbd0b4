// The objects of a backup, for the object store that is to serve them.
#pragma once

#include <functional>
#include <string>

#include "core/store/backup/backup_folder.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

// Checks all files of the backup in `folder` and stores its objects under their names, as long as `goes_on` returns
// true; else CANCELLED. Blocks. Errors of ReadBackup and of `blobs`. May be repeated.
absl::StatusOr<BackupManifest> PutBackupObjects(
    const std::string& folder, BlobStore* blobs, const std::function<bool()>& goes_on = [] { return true; });

}  // namespace chainfleet
