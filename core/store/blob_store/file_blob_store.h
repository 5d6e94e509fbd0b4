// Objects as files below a folder: temp file, fsync, rename, then one fsync of the folder for all waiting puts.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

// The caller keeps other processes out of the folder (FileLock on the data directory). Thread-safe.
class FileBlobStore final : public BlobStore {
 public:
  // Creates the folder and removes temp files of a process that died. `file_system` outlives the store.
  static absl::StatusOr<std::unique_ptr<FileBlobStore>> Open(FileSystem* file_system, const std::string& folder);

  absl::Status Put(const std::string& name, const ByteSource& content) override;
  absl::Status Replace(const std::string& name, const ByteSource& content) override;
  absl::StatusOr<std::string> Get(const std::string& name) const override;
  absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const override;
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const override;
  absl::Status ListPages(const std::string& prefix, const PageVisitor& visit) const override;
  absl::Status Delete(const std::string& name) override;

 private:
  // Makes a rename in `folder` durable: waits for a sync that began after the call, or runs one for all waiting calls.
  class FolderSync;

  FileBlobStore(FileSystem* file_system, std::string folder);
  absl::StatusOr<std::string> PathOf(const std::string& name) const;
  std::string NextTemp();
  // UNAVAILABLE / STORE_FAULT if the store's own folder is gone, for example because its mount was lost.
  absl::Status CheckFolder() const;
  // Classifies an error for one object. NOT_FOUND is an answer only while the store's own folder exists.
  // PERMISSION_DENIED is a fault of the store.
  absl::Status Judge(const absl::Status& status) const;
  // Creates `path` durably, for renames into it.
  absl::StatusOr<std::shared_ptr<FolderSync>> EnsureFolder(const std::string& path);
  // Writes a temp file and moves it to `path` with `rename`.
  absl::Status Write(const std::string& path, const ByteSource& content,
                     absl::Status (FileSystem::*rename)(const std::string& from, const std::string& to));

  FileSystem* const file_system_;
  const std::string folder_;
  std::atomic<uint64_t> next_temp_ = 0;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<FolderSync>> folders_ CHAINFLEET_GUARDED_BY(mutex_);  // exist durably
};

}  // namespace chainfleet
