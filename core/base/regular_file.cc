#include "core/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace chainfleet {
namespace {

absl::Status ErrnoStatus(int error) {
  const std::string message = std::generic_category().message(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case ELOOP:
    case ENXIO:
      return absl::InvalidArgumentError(message);
    default:
      return absl::InternalError(message);
  }
}

// Returns a descriptor, or a negative value and errno. Folders need only the permission to pass, not to read.
int OpenWithoutLinks(const std::filesystem::path& path) {
  int folder = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (const std::filesystem::path& part : path.parent_path().relative_path()) {
    if (folder < 0) return folder;
    const int next = ::openat(folder, part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int error = errno;
    ::close(folder);
    errno = error;
    folder = next;
  }
  if (folder < 0) return folder;
  // O_NONBLOCK: a pipe without a writer must not block the caller.
  const int file = ::openat(folder, path.filename().c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
  const int error = errno;
  ::close(folder);
  errno = error;
  return file;
}

absl::Status CheckRegular(const struct stat& info) {
  return S_ISREG(info.st_mode) ? absl::OkStatus() : absl::InvalidArgumentError("not a regular file");
}

}  // namespace

absl::StatusOr<std::unique_ptr<RegularFile>> RegularFile::Open(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return ErrnoStatus(errno);
  CHAINFLEET_RETURN_IF_ERROR(CheckRegular(info));  // before the open: opening a device may have effects
  const int descriptor = OpenWithoutLinks(path);
  if (descriptor < 0) return ErrnoStatus(errno);
  if (::fstat(descriptor, &info) != 0) info = {};
  std::unique_ptr<RegularFile> file(new RegularFile(descriptor, static_cast<int64_t>(info.st_size)));
  CHAINFLEET_RETURN_IF_ERROR(CheckRegular(info));
  return file;
}

RegularFile::~RegularFile() { ::close(descriptor_); }

absl::Status RegularFile::Read(int64_t part_bytes,
                               const std::function<absl::Status(std::string_view part)>& take) const {
  std::string buffer(static_cast<size_t>(std::min(part_bytes, size_bytes_)), '\0');
  for (int64_t done = 0; done < size_bytes_;) {
    const auto wanted = std::min(buffer.size(), static_cast<size_t>(size_bytes_ - done));
    const ssize_t n = ::pread(descriptor_, buffer.data(), wanted, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno);
    if (n == 0) return absl::AbortedError("it became shorter while it was read");
    CHAINFLEET_RETURN_IF_ERROR(take({buffer.data(), static_cast<size_t>(n)}));
    done += n;
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
