#include "core/base/spool_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace chainfleet {

struct SpoolFile::OpenFile {
  int descriptor;
  std::string folder;

  OpenFile(int open, std::string in) : descriptor(open), folder(std::move(in)) {}
  ~OpenFile() { ::close(descriptor); }

  // Transfers `count` bytes through pread or pwrite.
  template <typename Call, typename Pointer>
  absl::Status Move(Call call, Pointer* data, int64_t count, int64_t at, const char* verb) const {
    while (count > 0) {
      const ssize_t moved = call(descriptor, data, static_cast<size_t>(count), static_cast<off_t>(at));
      if (moved < 0 && errno == EINTR) continue;
      if (moved <= 0) {
        const std::string what = absl::StrCat("cannot ", verb, " a file in ", folder, ": ", std::strerror(errno));
        return errno == ENOSPC ? absl::ResourceExhaustedError(what) : absl::FailedPreconditionError(what);
      }
      data += moved;
      count -= moved;
      at += moved;
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<SpoolFile> SpoolFile::Make(const std::string& folder) {
  std::string name = folder + "/.chainfleet-spool-XXXXXX";
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot make a file in ", folder, ": ", std::strerror(errno)));
  }
  ::unlink(name.c_str());
  return SpoolFile(std::make_shared<const OpenFile>(descriptor, folder));
}

absl::Status SpoolFile::Write(int64_t at, const void* data, int64_t count) const {
  return file_->Move(::pwrite, static_cast<const char*>(data), count, at, "write");
}

absl::Status SpoolFile::Read(int64_t at, void* to, int64_t count) const {
  return file_->Move(::pread, static_cast<char*>(to), count, at, "read");
}

ByteSource SpoolFile::Content(int64_t size_bytes) const {
  return ByteSource::InFile(absl::StrCat("/proc/self/fd/", file_->descriptor), size_bytes);
}

}  // namespace chainfleet
