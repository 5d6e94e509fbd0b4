// Immutable objects by name. Calls block: run them on an Executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/limits.h"
#include "core/base/status.h"

namespace chainfleet {

inline constexpr size_t kListPage = 1000;  // the page size of S3
using PageVisitor = std::function<absl::Status(const std::vector<std::string>& names)>;

// Names are relative paths whose parts consist of [A-Za-z0-9._-] and are neither "." nor ".."; other names are
// INVALID_ARGUMENT. Thread-safe.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Creates the object; it is durable when Put returns OK. Writing the same bytes under the same name again is OK.
  // Other bytes are ALREADY_EXISTS: an object is never overwritten. RESOURCE_EXHAUSTED / DISK_FULL leaves nothing
  // behind.
  virtual absl::Status Put(const std::string& name, const ByteSource& content) = 0;

  // Replaces the object atomically and durably. Only PutContentAddressed and EncryptedBlobStore call it.
  virtual absl::Status Replace(const std::string& name, const ByteSource& content) = 0;

  // Errors: NOT_FOUND.
  virtual absl::StatusOr<std::string> Get(const std::string& name) const = 0;
  // Returns bytes [offset, offset + length), clipped at the end of the object.
  virtual absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const = 0;
  virtual absl::StatusOr<int64_t> SizeBytes(const std::string& name) const = 0;

  // Returns the names below `prefix` (a folder that ends with '/', or "") in byte order. For garbage collection only.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const = 0;

  // Passes the names of List to `visit`, at most kListPage at a time, until `visit` returns an error; returns that
  // error. Names below one folder are adjacent; there is no other order. Stores that may hold more names than fit into
  // memory keep only one page. This default splits the result of List.
  virtual absl::Status ListPages(const std::string& prefix, const PageVisitor& visit) const;

  // Returns OK even if the object does not exist.
  virtual absl::Status Delete(const std::string& name) = 0;

  // True if what chains write is encrypted: then nothing of it may be stored elsewhere in clear.
  virtual bool encrypts() const { return false; }
};

// Puts an object whose name contains the digest of `content`. If the store has other bytes under the name, these are
// damaged and Put replaces them. Errors of Put except ALREADY_EXISTS.
absl::Status PutContentAddressed(BlobStore* blobs, const std::string& name, const ByteSource& content);

// Returns OK if the object is equal to `content`, ALREADY_EXISTS if it differs, NOT_FOUND without an object. Keeps
// `part_bytes` of each in memory.
absl::Status CompareObject(const BlobStore& blobs, const std::string& name, const ByteSource& content,
                           int64_t part_bytes = 8 * limits::kMiB);

// INVALID_ARGUMENT unless `name` is a valid object name.
absl::Status CheckBlobName(const std::string& name);

}  // namespace chainfleet
