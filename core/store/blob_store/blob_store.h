// Immutable objects by name. Blocking: callers run it on an Executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

inline constexpr size_t kListPage = 1000;  // the page size of S3
using PageVisitor = std::function<absl::Status(const std::vector<std::string>& names)>;

// Thread-safe. Names are relative paths of [A-Za-z0-9._-] parts that are neither "." nor ".."; others are
// INVALID_ARGUMENT.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Creates the object; durable when it returns OK. The same bytes under the same name again are OK. Other bytes are
  // ALREADY_EXISTS: an object is never overwritten. RESOURCE_EXHAUSTED / DISK_FULL leaves nothing behind.
  virtual absl::Status Put(const std::string& name, const std::string& bytes) = 0;

  // Replaces the object atomically and durably. Only PutContentAddressed calls it.
  virtual absl::Status Replace(const std::string& name, const std::string& bytes) = 0;

  // NOT_FOUND.
  virtual absl::StatusOr<std::string> Get(const std::string& name) const = 0;
  // [offset, offset + length), shorter at the end of the object.
  virtual absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const = 0;
  virtual absl::StatusOr<int64_t> SizeBytes(const std::string& name) const = 0;

  // Names below `prefix` (a folder: ends with '/', or empty for all), in byte order. For garbage collection only.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const = 0;

  // The same names for `visit`, at most kListPage at a time, until it returns an error, which is returned. Names
  // below one folder come together; there is no other order. Stores that may hold more names than fit into memory keep
  // one page; this default cuts the result of List.
  virtual absl::Status ListPages(const std::string& prefix, const PageVisitor& visit) const;

  // OK also if the object does not exist.
  virtual absl::Status Delete(const std::string& name) = 0;
};

// Put for an object whose name is made of the digest of `bytes`: if other bytes are there, they are damaged, and are
// replaced. Errors of Put but ALREADY_EXISTS.
absl::Status PutContentAddressed(BlobStore* blobs, const std::string& name, const std::string& bytes);

// INVALID_ARGUMENT unless `name` may name an object.
absl::Status CheckBlobName(const std::string& name);

}  // namespace chainfleet
