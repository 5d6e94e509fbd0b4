// Reads immutable objects of the store through the coordinator, and checks their digests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/executor.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/base/rng_key.h"
#include "core/domain/draw.h"
#include "worker/runtime/session/coordinator_port.h"

namespace chainfleet {

// A folder for data-set files, named by digest, that outlives the process. At limits::kDiskCacheBytes nothing more is
// added. Without `files` nothing is cached.
struct DiskCache {
  FileSystem* files = nullptr;
  std::string folder;
};

// Thread-safe. Before it is destroyed, executor and port must have stopped calling.
class ObjectFetcher {
 public:
  ObjectFetcher(CoordinatorPort* port, Executor* executor, RngKey jitter_key, DiskCache disk = {});

  // Retries UNAVAILABLE and DEADLINE_EXCEEDED limits::kUploadAttempts times with backoff. NOT_FOUND. DATA_LOSS: the
  // bytes do not have the digest `ref.sha256`. `on_disk`: reads the disk cache first, and adds the object to it.
  void Fetch(const BlobRef& ref, bool on_disk, Done<std::shared_ptr<const std::string>> done);

  // The path of a fetched object in the disk cache; empty if it is not there. Its bytes may have been damaged since.
  std::string PathOnDisk(const BlobRef& ref) const;

 private:
  struct Attempt;

  void Get(const std::shared_ptr<Attempt>& attempt);
  void OnBytes(const std::shared_ptr<Attempt>& attempt, absl::StatusOr<std::shared_ptr<const std::string>> bytes);
  std::shared_ptr<const std::string> ReadFromDisk(const BlobRef& ref);
  void WriteToDisk(const BlobRef& ref, const std::string& bytes);

  CoordinatorPort* const port_;
  Executor* const executor_;
  const RngKey jitter_key_;
  const DiskCache disk_;
  Mutex mutex_;
  int64_t disk_bytes_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
};

}  // namespace chainfleet
