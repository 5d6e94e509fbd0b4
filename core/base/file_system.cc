#include "core/base/file_system.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

constexpr int64_t kCopiedBytes = limits::kMiB;  // at a time, of a file

absl::Status ErrnoError(const std::string& what, const std::string& path, int error) {
  const std::string message = absl::StrCat(what, " ", path, ": ", std::generic_category().message(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    case ENOSPC:
    case EDQUOT:
      return WithReason(absl::ResourceExhaustedError(message), "DISK_FULL");
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case EROFS:
    case EIO:
    case ESTALE:
    case EMFILE:
    case ENFILE:
    case ENODEV:
    case ENOTCONN:
    case EHOSTDOWN:
    case ETIMEDOUT:
      return WithReason(absl::UnavailableError(message), kStoreFault);
    default:
      return absl::InternalError(message);
  }
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  bool ok() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::Status WriteAll(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError("cannot write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

class DiskFileSystem final : public FileSystem {
 public:
  absl::Status WriteSynced(const std::string& path, const ByteSource& content) override {
    Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.ok()) return ErrnoError("cannot create", path, errno);
    CHAINFLEET_RETURN_IF_ERROR(
        content.ForEachPart(kCopiedBytes, [&](std::string_view part) { return WriteAll(file.get(), part, path); }));
    if (::fsync(file.get()) != 0) return ErrnoError("cannot sync", path, errno);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Read(const std::string& path) const override { return ReadRange(path, 0, INT64_MAX); }

  absl::StatusOr<std::string> ReadRange(const std::string& path, int64_t offset, int64_t length) const override {
    Descriptor file(path, O_RDONLY);
    if (!file.ok()) return ErrnoError("cannot open", path, errno);
    struct stat info;
    if (::fstat(file.get(), &info) != 0) return ErrnoError("cannot stat", path, errno);
    const int64_t present = std::max<int64_t>(0, static_cast<int64_t>(info.st_size) - offset);
    std::string bytes(static_cast<size_t>(std::min(length, present)), '\0');
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n =
          ::pread(file.get(), bytes.data() + done, bytes.size() - done, offset + static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoError("cannot read", path, errno);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    bytes.resize(done);
    return bytes;
  }

  absl::StatusOr<int64_t> SizeBytes(const std::string& path) const override {
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) return ErrnoError("cannot stat", path, errno);
    return static_cast<int64_t>(info.st_size);
  }

  absl::Status RenameNew(const std::string& from, const std::string& to) override {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return absl::OkStatus();
    if (errno != EINVAL) return ErrnoError("cannot rename to", to, errno);
    // Some file systems do not support RENAME_NOREPLACE; link + unlink rejects an existing target as well.
    if (::link(from.c_str(), to.c_str()) != 0) return ErrnoError("cannot link to", to, errno);
    if (::unlink(from.c_str()) != 0) return ErrnoError("cannot remove", from, errno);
    return absl::OkStatus();
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    return ::rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : ErrnoError("cannot rename to", to, errno);
  }

  absl::Status SyncFolder(const std::string& path) override {
    Descriptor folder(path, O_RDONLY | O_DIRECTORY);
    if (!folder.ok()) return ErrnoError("cannot open folder", path, errno);
    if (::fsync(folder.get()) != 0) return ErrnoError("cannot sync folder", path, errno);
    return absl::OkStatus();
  }

  absl::Status CreateFolders(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    return error ? ErrnoError("cannot create folder", path, error.value()) : absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    return ::unlink(path.c_str()) == 0 ? absl::OkStatus() : ErrnoError("cannot remove", path, errno);
  }

  absl::Status RemoveEmptyFolder(const std::string& path) override {
    return ::rmdir(path.c_str()) == 0 ? absl::OkStatus() : ErrnoError("cannot remove folder", path, errno);
  }

  absl::Status VisitFiles(const std::string& folder, const FileVisitor& visit) const override {
    std::error_code error;
    std::filesystem::recursive_directory_iterator it(folder, error), end;
    if (error.value() == ENOENT) return absl::OkStatus();
    for (; !error && it != end; it.increment(error)) {
      std::error_code gone;  // a file may vanish while the folder is read
      if (!it->is_regular_file(gone)) continue;
      CHAINFLEET_RETURN_IF_ERROR(visit(std::filesystem::path(it->path()).lexically_relative(folder).string()));
    }
    return error ? ErrnoError("cannot list", folder, error.value()) : absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::vector<std::string>> FileSystem::ListFiles(const std::string& folder) const {
  std::vector<std::string> files;
  CHAINFLEET_RETURN_IF_ERROR(VisitFiles(folder, [&](const std::string& file) {
    files.push_back(file);
    return absl::OkStatus();
  }));
  std::sort(files.begin(), files.end());
  return files;
}

FileSystem* RealFileSystem() {
  static DiskFileSystem* const disk = new DiskFileSystem;
  return disk;
}

absl::Status CreateFoldersSynced(const std::string& path) {
  std::error_code error;  // ignored: creating the folder gives a better error
  std::vector<std::string> parents;
  for (auto folder = std::filesystem::absolute(path, error); !std::filesystem::exists(folder, error);
       folder = folder.parent_path()) {
    parents.push_back(folder.parent_path().string());
  }
  CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->CreateFolders(path));
  for (const std::string& parent : parents) CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->SyncFolder(parent));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Acquire(const std::string& path) {
  Descriptor file(path, O_RDWR | O_CREAT);
  if (!file.ok()) return ErrnoError("cannot create", path, errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoError("cannot lock", path, errno);
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(path, " is locked: the folder is in use by another process")),
        "IN_USE");
  }
  return std::unique_ptr<FileLock>(new FileLock(file.Release()));
}

FileLock::~FileLock() { ::close(descriptor_); }

}  // namespace chainfleet
