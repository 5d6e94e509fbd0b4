#include "client/cli/spool_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

// Transfers `count` bytes through pread or pwrite.
template <typename Call, typename Pointer>
absl::Status Move(Call call, int file, Pointer* data, int64_t count, int64_t at, const char* verb) {
  while (count > 0) {
    const ssize_t moved = call(file, data, static_cast<size_t>(count), static_cast<off_t>(at));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) {
      const std::string what = absl::StrCat("cannot ", verb, " the draws beside the output: ", std::strerror(errno));
      return errno == ENOSPC ? absl::ResourceExhaustedError(what) : absl::FailedPreconditionError(what);
    }
    data += moved;
    count -= moved;
    at += moved;
  }
  return absl::OkStatus();
}

}  // namespace

SpoolFile::SpoolFile(int file)
    : file_(new int(file), [](const int* open) {
        ::close(*open);
        delete open;
      }) {}

absl::StatusOr<SpoolFile> SpoolFile::Make(const std::string& beside) {
  const std::filesystem::path parent = std::filesystem::absolute(beside).parent_path();
  std::error_code gone;
  const std::string folder = std::filesystem::is_regular_file(beside, gone) || !std::filesystem::exists(beside, gone) ||
                                     std::filesystem::is_directory(beside, gone)
                                 ? parent.string()
                                 : std::filesystem::temp_directory_path(gone).string();  // the output is a device
  std::string name = folder + "/.chainfleet-export-XXXXXX";
  const int file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot make a file in ", folder, ": ", std::strerror(errno)));
  }
  ::unlink(name.c_str());
  return SpoolFile(file);
}

absl::Status SpoolFile::Write(int64_t at, const void* data, int64_t count) const {
  return Move(::pwrite, *file_, static_cast<const char*>(data), count, at, "write");
}

absl::Status SpoolFile::Read(int64_t at, void* to, int64_t count) const {
  return Move(::pread, *file_, static_cast<char*>(to), count, at, "read");
}

}  // namespace chainfleet
