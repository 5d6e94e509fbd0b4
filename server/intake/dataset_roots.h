// Where the server reads data sets by itself: folders of its host and prefixes of buckets, all else is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/store/blob_store/s3_client.h"
#include "server/intake/dataset_uri.h"

namespace chainfleet {

// Thread-safe once all roots are added. Without a root every URI is refused.
class DatasetRoots {
 public:
  // INVALID_ARGUMENT unless `folder` is absolute, NOT_FOUND unless there is such a folder.
  static absl::Status CheckFolder(const std::string& folder);

  // Where its links lead is found here, once.
  void AddFolder(const std::string& folder);
  // Objects of its bucket below its prefix.
  void AddBucket(std::unique_ptr<S3Client> client) { buckets_.push_back(std::move(client)); }

  // What can be said of a URI without looking: FAILED_PRECONDITION / NO_DATASET_ROOT; errors of ParseDatasetUri.
  absl::Status Check(const std::string& uri) const;

  using Admit = std::function<absl::Status(int64_t size_bytes)>;

  // The whole file. Its size is asked first, and `admit` if it may be read. Of a path that is not below a root as it is
  // written nothing is asked of the system. Blocking. Errors name the URI and say what to do; besides those of Check
  // and `admit`: PERMISSION_DENIED: it does not lie below a root, as it is written and wherever links and `..` lead, or
  // this process may not read it. NOT_FOUND. INVALID_ARGUMENT: not a regular file. RESOURCE_EXHAUSTED: over
  // `max_bytes`. ABORTED: it became shorter meanwhile. Errors of S3Client::StatusOf.
  absl::StatusOr<std::string> Read(
      const std::string& uri, int64_t max_bytes, const Admit& admit = [](int64_t) { return absl::OkStatus(); }) const;

 private:
  struct Folder {
    std::string written, real;  // real: with its links followed
  };
  absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes, const Admit& admit) const;
  absl::StatusOr<std::string> ReadObject(const DatasetUri& uri, int64_t max_bytes, const Admit& admit) const;

  std::vector<Folder> folders_;
  std::vector<std::unique_ptr<S3Client>> buckets_;
};

}  // namespace chainfleet
