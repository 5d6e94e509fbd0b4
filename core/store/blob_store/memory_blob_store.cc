#include "core/store/blob_store/memory_blob_store.h"

#include <algorithm>

namespace chainfleet {

absl::Status MemoryBlobStore::Put(const std::string& name, const std::string& bytes) {
  CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
  MutexLock lock(&mutex_);
  const auto [it, created] = objects_.emplace(name, bytes);
  if (!created && it->second != bytes) return absl::AlreadyExistsError("object " + name + " exists with other bytes");
  return absl::OkStatus();
}

absl::Status MemoryBlobStore::Replace(const std::string& name, const std::string& bytes) {
  CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
  MutexLock lock(&mutex_);
  objects_[name] = bytes;
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryBlobStore::Get(const std::string& name) const { return GetRange(name, 0, INT64_MAX); }

absl::StatusOr<std::string> MemoryBlobStore::GetRange(const std::string& name, int64_t offset, int64_t length) const {
  CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
  MutexLock lock(&mutex_);
  const auto it = objects_.find(name);
  if (it == objects_.end()) return absl::NotFoundError("no object " + name);
  const size_t begin = std::min(static_cast<size_t>(offset), it->second.size());
  return it->second.substr(begin, static_cast<size_t>(length));
}

absl::StatusOr<int64_t> MemoryBlobStore::SizeBytes(const std::string& name) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, Get(name));
  return static_cast<int64_t>(bytes.size());
}

absl::StatusOr<std::vector<std::string>> MemoryBlobStore::List(const std::string& prefix) const {
  std::vector<std::string> names;
  MutexLock lock(&mutex_);
  for (auto it = objects_.lower_bound(prefix); it != objects_.end() && it->first.starts_with(prefix); ++it)
    names.push_back(it->first);
  return names;
}

absl::Status MemoryBlobStore::Delete(const std::string& name) {
  CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
  MutexLock lock(&mutex_);
  objects_.erase(name);
  return absl::OkStatus();
}

}  // namespace chainfleet
