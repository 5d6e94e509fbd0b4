// A regular file that is open for reading. Open checks the same file that Read reads, even if the name changes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace chainfleet {

// Errors say what is wrong with the file; the caller adds the file's name.
class RegularFile {
 public:
  // `path` is absolute. Open follows no link, so a path that was resolved and checked names the same file. Errors:
  // NOT_FOUND, also for a link in place of a folder; PERMISSION_DENIED; INVALID_ARGUMENT for a link, a folder, a device
  // or a pipe; else INTERNAL.
  static absl::StatusOr<std::unique_ptr<RegularFile>> Open(const std::string& path);
  ~RegularFile();

  // Returns the size when the file was opened.
  int64_t size_bytes() const { return size_bytes_; }

  // Passes the first size_bytes() bytes to `take`, in order, at most `part_bytes` at a time. Returns its first error.
  // Errors: ABORTED if the file is shorter now, INTERNAL.
  absl::Status Read(int64_t part_bytes, const std::function<absl::Status(std::string_view part)>& take) const;

 private:
  RegularFile(int descriptor, int64_t size_bytes) : descriptor_(descriptor), size_bytes_(size_bytes) {}
  const int descriptor_;
  const int64_t size_bytes_;
};

}  // namespace chainfleet
