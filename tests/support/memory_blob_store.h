// Objects in memory.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

class MemoryBlobStore final : public BlobStore {
 public:
  absl::Status Put(const std::string& name, const ByteSource& content) override {
    CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, content.ReadAll());
    MutexLock lock(&mutex_);
    const auto [it, created] = objects_.emplace(name, bytes);
    if (!created && it->second != bytes) return absl::AlreadyExistsError("object " + name + " exists with other bytes");
    return absl::OkStatus();
  }
  absl::Status Replace(const std::string& name, const ByteSource& content) override {
    CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, content.ReadAll());
    MutexLock lock(&mutex_);
    objects_[name] = bytes;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Get(const std::string& name) const override { return GetRange(name, 0, INT64_MAX); }
  absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const override {
    CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
    MutexLock lock(&mutex_);
    const auto it = objects_.find(name);
    if (it == objects_.end()) return absl::NotFoundError("no object " + name);
    const size_t begin = std::min(static_cast<size_t>(offset), it->second.size());
    return it->second.substr(begin, static_cast<size_t>(length));
  }
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, Get(name));
    return static_cast<int64_t>(bytes.size());
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const override {
    std::vector<std::string> names;
    MutexLock lock(&mutex_);
    for (auto it = objects_.lower_bound(prefix); it != objects_.end() && it->first.starts_with(prefix); ++it) {
      names.push_back(it->first);
    }
    return names;
  }
  absl::Status Delete(const std::string& name) override {
    CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
    MutexLock lock(&mutex_);
    objects_.erase(name);
    return absl::OkStatus();
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::string> objects_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
