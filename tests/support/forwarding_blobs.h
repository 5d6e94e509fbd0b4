// Objects in memory, for tests that change what one call does.
#pragma once

#include <string>
#include <vector>

#include "tests/support/memory_blob_store.h"

namespace chainfleet {

class ForwardingBlobs : public BlobStore {
 public:
  absl::Status Put(const std::string& name, const ByteSource& content) override { return blobs.Put(name, content); }
  absl::Status Replace(const std::string& name, const ByteSource& content) override {
    return blobs.Replace(name, content);
  }
  absl::StatusOr<std::string> Get(const std::string& name) const override { return blobs.Get(name); }
  absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const override {
    return blobs.GetRange(name, offset, length);
  }
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override { return blobs.SizeBytes(name); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const override { return blobs.List(prefix); }
  absl::Status Delete(const std::string& name) override { return blobs.Delete(name); }

  MemoryBlobStore blobs;
};

}  // namespace chainfleet
