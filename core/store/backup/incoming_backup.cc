#include "core/store/backup/incoming_backup.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/disk_space.h"
#include "core/store/backup/backup_folder.h"

namespace chainfleet {
namespace {

absl::Status CannotWrite(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat("the server cannot write ", path, ": is its disk full?"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<IncomingBackup>> IncomingBackup::Open(const std::string& folder) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, FileLock::Acquire(folder + ".lock"));
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->CreateFolders(folder));
  return std::unique_ptr<IncomingBackup>(new IncomingBackup(folder, std::move(lock)));
}

IncomingBackup::~IncomingBackup() {
  std::error_code ignored;  // the next backup removes what is left
  std::filesystem::remove_all(folder_, ignored);
}

absl::Status IncomingBackup::Begin(const std::string& file, int64_t size_bytes) {
  CHAINFLEET_RETURN_IF_ERROR(End());
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, BackupFilePath(folder_, file));
  if (size_bytes < 0 || RealFileSystem()->SizeBytes(path).ok()) {
    return absl::InvalidArgumentError(absl::StrCat("file ", file, " of the backup comes twice, or has no size"));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const DiskSpace disk, DiskSpaceOf(folder_));
  if (size_bytes > (disk.free_bytes - kFreeBytes - total_) / 2) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("no room for file ", file, " of the backup, ", size_bytes,
                                                  " bytes: its disk has ", disk.free_bytes, " bytes left, of which ",
                                                  kFreeBytes, " stay free. Free some and restore again")),
        "DISK_FULL");
  }
  CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->CreateFolders(std::filesystem::path(path).parent_path().string()));
  file_ = std::ofstream(path, std::ios::binary | std::ios::trunc);
  if (!file_) return CannotWrite(path);
  name_ = file;
  left_ = size_bytes;
  total_ += size_bytes;
  return absl::OkStatus();
}

absl::Status IncomingBackup::Add(std::string_view bytes) {
  if (name_.empty() || std::ssize(bytes) > left_) {
    return absl::InvalidArgumentError(absl::StrCat("file ", name_, " of the backup has more bytes than its size"));
  }
  left_ -= std::ssize(bytes);
  return file_.write(bytes.data(), std::ssize(bytes)) ? absl::OkStatus() : CannotWrite(folder_ + "/" + name_);
}

absl::Status IncomingBackup::End() {
  if (name_.empty()) return absl::OkStatus();
  if (left_ > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the upload broke off: file ", name_, " of the backup lacks ", left_, " bytes; restore again"));
  }
  file_.close();
  return file_ ? absl::OkStatus() : CannotWrite(folder_ + "/" + name_);
}

}  // namespace chainfleet
