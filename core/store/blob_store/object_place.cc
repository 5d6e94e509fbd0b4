#include "core/store/blob_store/object_place.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace chainfleet {

ObjectPlace::ObjectPlace(FileSystem* file_system, const std::string& data_directory)
    : file_system_(file_system),
      data_directory_(data_directory),
      folder_(data_directory + "/blobs"),
      file_(data_directory + "/objects_in") {}

absl::Status ObjectPlace::Check(const std::string& url) const {
  absl::StatusOr<std::string> kept = file_system_->Read(file_);
  if (!kept.ok() && !absl::IsNotFound(kept.status())) return kept.status();
  absl::string_view place = kept.ok() ? absl::StripAsciiWhitespace(*kept) : absl::string_view();
  if (!kept.ok()) {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> objects, file_system_->ListFiles(folder_));
    const bool none = std::ranges::all_of(objects, [](const std::string& name) { return name.starts_with('.'); });
    if (none) return absl::OkStatus();  // there are no objects yet
  }
  if (place == url) return absl::OkStatus();
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "the objects of data directory ", data_directory_, " are in ", place.empty() ? folder_ : place,
                        ", not in ", url.empty() ? folder_ : url, ": start the server ",
                        place.empty() ? "without --blobs" : absl::StrCat("with --blobs ", place),
                        ", or copy them under the same names and start it once with --objects-moved")),
                    "OTHER_STORE");
}

absl::StatusOr<std::string> ObjectPlace::FolderId(const std::string& fresh) const {
  const std::string file = folder_ + "/.id";
  absl::StatusOr<std::string> kept = file_system_->Read(file);
  if (absl::IsNotFound(kept.status())) {
    const std::string temp = absl::StrCat(file, ".", fresh);
    CHAINFLEET_RETURN_IF_ERROR(file_system_->CreateFolders(folder_));
    CHAINFLEET_RETURN_IF_ERROR(file_system_->WriteSynced(temp, fresh + "\n"));
    // If several processes write an id, the first one wins.
    if (const absl::Status made = file_system_->RenameNew(temp, file); absl::IsAlreadyExists(made)) {
      CHAINFLEET_RETURN_IF_ERROR(file_system_->Remove(temp));
    } else {
      CHAINFLEET_RETURN_IF_ERROR(made);
    }
    CHAINFLEET_RETURN_IF_ERROR(file_system_->SyncFolder(folder_));
    CHAINFLEET_RETURN_IF_ERROR(file_system_->SyncFolder(data_directory_));
    kept = file_system_->Read(file);
  }
  CHAINFLEET_RETURN_IF_ERROR(kept.status());
  std::string id(absl::StripAsciiWhitespace(*kept));
  if (!id.empty()) return id;
  return absl::DataLossError(absl::StrCat(file,
                                          " is empty: put it back from a backup; or, if the objects beside it are "
                                          "whole, remove it and start the server once with --objects-moved"));
}

absl::Status ObjectPlace::Keep(const std::string& url) const {
  const std::string temp = file_ + ".new";
  CHAINFLEET_RETURN_IF_ERROR(file_system_->WriteSynced(temp, url + "\n"));
  CHAINFLEET_RETURN_IF_ERROR(file_system_->Rename(temp, file_));
  return file_system_->SyncFolder(data_directory_);
}

}  // namespace chainfleet
