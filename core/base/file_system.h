// Files as a parameter: this header has the real ones, the simulator has a fake that forgets unsynced data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/status.h"

namespace chainfleet {

using FileVisitor = std::function<absl::Status(const std::string& file)>;

// The reason of an UNAVAILABLE that a disk, a mount or the host causes: the same call may succeed later.
inline constexpr char kStoreFault[] = "STORE_FAULT";

// Thread-safe. Errors: NOT_FOUND, ALREADY_EXISTS, RESOURCE_EXHAUSTED (full disk or quota), PERMISSION_DENIED,
// UNAVAILABLE / STORE_FAULT (I/O error, stale or read-only mount, no descriptors), else INTERNAL. Each error names the
// path and quotes the system's message.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates or truncates `path`, writes `content` and fsyncs the file, but not its folder. Errors of `content`.
  virtual absl::Status WriteSynced(const std::string& path, const ByteSource& content) = 0;
  virtual absl::StatusOr<std::string> Read(const std::string& path) const = 0;
  // Reads [offset, offset + length); returns fewer bytes at the end of the file.
  virtual absl::StatusOr<std::string> ReadRange(const std::string& path, int64_t offset, int64_t length) const = 0;
  virtual absl::StatusOr<int64_t> SizeBytes(const std::string& path) const = 0;
  // Returns ALREADY_EXISTS if `to` exists; never replaces a file.
  virtual absl::Status RenameNew(const std::string& from, const std::string& to) = 0;
  // Replaces `to` if the file exists.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status SyncFolder(const std::string& path) = 0;
  virtual absl::Status CreateFolders(const std::string& path) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Returns INTERNAL if the folder is not empty.
  virtual absl::Status RemoveEmptyFolder(const std::string& path) = 0;
  // Calls `visit` with the relative path of each file below `folder`, and returns at the first error of `visit`. Files
  // of one folder come together; there is no other order. A missing `folder` has no files.
  virtual absl::Status VisitFiles(const std::string& folder, const FileVisitor& visit) const = 0;
  // Returns the paths that VisitFiles visits, in byte order.
  absl::StatusOr<std::vector<std::string>> ListFiles(const std::string& folder) const;
};

// Returns the process's one view of the real disk.
FileSystem* RealFileSystem();

// Creates the folder and its missing parents on the real disk. A power cut does not remove them.
absl::Status CreateFoldersSynced(const std::string& path);

// An exclusive advisory lock on `path`, held until destroyed. FAILED_PRECONDITION / IN_USE if another process holds it.
class FileLock {
 public:
  static absl::StatusOr<std::unique_ptr<FileLock>> Acquire(const std::string& path);
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace chainfleet
