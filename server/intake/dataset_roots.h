// The places from which the server may read data sets and networks: folders of its host and prefixes of buckets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/store/blob_store/s3_client.h"
#include "server/intake/dataset_uri.h"

namespace chainfleet {

// Without a root every URI is refused. Thread-safe once all roots are added.
class DatasetRoots {
 public:
  // INVALID_ARGUMENT unless `folder` is absolute, NOT_FOUND unless there is such a folder.
  static absl::Status CheckFolder(const std::string& folder);

  // Resolves the folder's links once, here.
  void AddFolder(const std::string& folder);
  // Allows the objects of the client's bucket below its prefix.
  void AddBucket(std::unique_ptr<S3Client> client) { buckets_.push_back(std::move(client)); }

  // Checks a URI without a read. FAILED_PRECONDITION / NO_DATASET_ROOT; errors of ParseDatasetUri.
  absl::Status Check(const std::string& uri) const;

  using Admit = std::function<absl::Status(int64_t size_bytes)>;
  using TakePart = std::function<absl::Status(std::string_view part)>;

  // Passes the whole file to `take`, in order and in parts of a few MiB. Asks for its size first, then `admit` whether
  // it may be read. A path that is not literally below a root causes no system call. Blocks. Errors name the URI and
  // say what to do; besides the errors of Check, `admit` and `take`: PERMISSION_DENIED: the path is not below a root,
  // literally or after links and `..` are resolved, or this process may not read it. NOT_FOUND. INVALID_ARGUMENT: not a
  // regular file. RESOURCE_EXHAUSTED: over `max_bytes`. ABORTED: the file became shorter, or the object was replaced,
  // meanwhile. Errors of S3Client::StatusOf.
  absl::Status Read(const std::string& uri, int64_t max_bytes, const Admit& admit, const TakePart& take) const;

 private:
  struct Folder {
    std::string written, real;  // real: with links resolved
  };
  absl::Status ReadFile(const std::string& path, int64_t max_bytes, const Admit& admit, const TakePart& take) const;
  absl::Status ReadObject(const DatasetUri& uri, int64_t max_bytes, const Admit& admit, const TakePart& take) const;

  std::vector<Folder> folders_;
  std::vector<std::unique_ptr<S3Client>> buckets_;
};

}  // namespace chainfleet
