// A regular file that is open for reading. The checked file is the file that is read, even if its name changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Errors say what is wrong with the file and leave its name to the caller.
class RegularFile {
 public:
  // `path` is absolute. No link in it is followed, so that a path which was resolved and checked names the same file.
  // NOT_FOUND, also for a link where a folder must be; PERMISSION_DENIED; INVALID_ARGUMENT: a link, a folder, a device,
  // a pipe; else INTERNAL.
  static absl::StatusOr<std::unique_ptr<RegularFile>> Open(const std::string& path);
  ~RegularFile();

  // The size when the file was opened.
  int64_t size_bytes() const { return size_bytes_; }

  // Reads size_bytes() bytes. Errors: ABORTED if the file has become shorter, INTERNAL.
  absl::StatusOr<std::string> Read() const;

 private:
  RegularFile(int descriptor, int64_t size_bytes) : descriptor_(descriptor), size_bytes_(size_bytes) {}
  const int descriptor_;
  const int64_t size_bytes_;
};

}  // namespace chainfleet
