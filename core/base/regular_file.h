// A regular file that is open for reading: what was looked at is what is read, whatever happens to its name meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Errors say what is wrong with the file and leave its name to the caller.
class RegularFile {
 public:
  // `path` is absolute. No link on the way is followed, so that a path which was resolved and judged stays what it was.
  // NOT_FOUND, also for a link where a folder must be; PERMISSION_DENIED; INVALID_ARGUMENT: a link, a folder, a device,
  // a pipe; else INTERNAL.
  static absl::StatusOr<std::unique_ptr<RegularFile>> Open(const std::string& path);
  ~RegularFile();

  // When it was opened.
  int64_t size_bytes() const { return size_bytes_; }

  // size_bytes() bytes. ABORTED: it has become shorter. INTERNAL.
  absl::StatusOr<std::string> Read() const;

 private:
  RegularFile(int descriptor, int64_t size_bytes) : descriptor_(descriptor), size_bytes_(size_bytes) {}
  const int descriptor_;
  const int64_t size_bytes_;
};

}  // namespace chainfleet
