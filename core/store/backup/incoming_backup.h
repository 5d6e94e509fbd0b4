// A backup that comes file by file, from a client that is not trusted.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/file_system.h"
#include "core/base/status.h"

namespace chainfleet {

// Not thread-safe.
class IncomingBackup {
 public:
  // Empties `folder`, which has the files until this is destroyed. FAILED_PRECONDITION / IN_USE: it is another's.
  static absl::StatusOr<std::unique_ptr<IncomingBackup>> Open(const std::string& folder);
  ~IncomingBackup();

  // Begins a file of the backup's folder. INVALID_ARGUMENT: it is no file of a backup, comes twice, or the file before
  // has fewer bytes than its size. RESOURCE_EXHAUSTED / DISK_FULL: the disk must have room for this file, for another
  // copy of all that came, and for kFreeBytes.
  absl::Status Begin(const std::string& file, int64_t size_bytes);
  // INVALID_ARGUMENT: the file has more bytes than its size, or none has begun.
  absl::Status Add(std::string_view bytes);
  // Ends the last file.
  absl::Status End();
  const std::string& folder() const { return folder_; }

  static constexpr int64_t kFreeBytes = int64_t{256} << 20;

 private:
  IncomingBackup(std::string folder, std::unique_ptr<FileLock> lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}

  const std::string folder_;
  const std::unique_ptr<FileLock> lock_;
  std::string name_;   // the file that comes; "" before the first
  int64_t left_ = 0;   // bytes of it that have not come
  int64_t total_ = 0;  // bytes of all files that have begun
  std::ofstream file_;
};

}  // namespace chainfleet
