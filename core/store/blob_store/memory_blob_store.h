// Objects in memory, for tests and simulation.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

class MemoryBlobStore final : public BlobStore {
 public:
  absl::Status Put(const std::string& name, const std::string& bytes) override;
  absl::Status Replace(const std::string& name, const std::string& bytes) override;
  absl::StatusOr<std::string> Get(const std::string& name) const override;
  absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const override;
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const override;
  absl::Status Delete(const std::string& name) override;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::string> objects_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
