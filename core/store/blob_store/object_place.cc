#include "core/store/blob_store/object_place.h"

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
    if (objects.empty()) return absl::OkStatus();  // nothing is anywhere yet
  }
  if (place == url) return absl::OkStatus();
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "the objects of data directory ", data_directory_, " are in ", place.empty() ? folder_ : place,
                        ", not in ", url.empty() ? folder_ : url, ": start the server ",
                        place.empty() ? "without --blobs" : absl::StrCat("with --blobs ", place),
                        ", or copy them under the same names and write the new address into ", file_)),
                    "OTHER_STORE");
}

absl::Status ObjectPlace::Keep(const std::string& url) const {
  const std::string temp = file_ + ".new";
  CHAINFLEET_RETURN_IF_ERROR(file_system_->WriteSynced(temp, url + "\n"));
  CHAINFLEET_RETURN_IF_ERROR(file_system_->Rename(temp, file_));
  return file_system_->SyncFolder(data_directory_);
}

}  // namespace chainfleet
