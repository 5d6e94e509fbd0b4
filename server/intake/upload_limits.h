// Bounds on all uploads of users together: memory, and concurrent reads of data sets by URI.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/base/byte_budget.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// The bytes that all uploads may hold, and half of them that those of one tenant may. A tenant holds no more than it
// leaves free, so that tenants who fill their part leave one to the next: half, then a quarter, an eighth. Thread-safe.
class UploadBudget {
 public:
  explicit UploadBudget(int64_t max_bytes) : all_(max_bytes) {}

  const ByteBudget& all() const { return all_; }
  ByteBudget Of(const std::string& tenant) const {
    MutexLock lock(&mutex_);
    return by_tenant_.try_emplace(tenant, ByteBudget(all_.max_bytes() / 2)).first->second;
  }

 private:
  const ByteBudget all_;
  mutable Mutex mutex_;
  mutable std::map<std::string, ByteBudget> by_tenant_ CHAINFLEET_GUARDED_BY(mutex_);
};

// One upload's share of these bytes; the destructor returns it. Not thread-safe.
class UploadShare {
 public:
  // `tenant` is empty for uploads of workers, and on a server without tokens: only the bound of all uploads counts.
  explicit UploadShare(const UploadBudget* budget, std::string tenant = "")
      : tenant_(std::move(tenant)),
        all_(budget->all()),
        of_tenant_(tenant_.empty() ? all_ : budget->Of(tenant_)),
        own_(of_tenant_),
        share_(all_) {}

  const std::string& tenant() const { return tenant_; }
  // RESOURCE_EXHAUSTED / UPLOADS_FULL: other uploads hold too much; TENANT_LIMIT: those of this tenant do. The upload
  // must end then.
  absl::Status Add(int64_t bytes);

 private:
  const std::string tenant_;
  const ByteBudget all_, of_tenant_;
  ByteShare own_;
  ByteShare share_;
};

// Scheduled reads run even if this object is destroyed meanwhile. Thread-safe.
class DatasetReads {
 public:
  // Runs at most `width` reads at a time on `executor`.
  DatasetReads(Executor* executor, int width) : width_(width), turns_(executor, width) {}

  // `tenant`: as UploadShare's. On an error `read` is dropped. RESOURCE_EXHAUSTED / UPLOADS_FULL:
  // limits::kWaitingDatasetReads already wait; TENANT_LIMIT: half as many of this tenant wait or run.
  absl::Status Schedule(const std::string& tenant, std::function<void()> read);
  // Number of reads that wait or run.
  size_t unfinished() const {
    MutexLock lock(&unfinished_->mutex);
    return unfinished_->tenants.size();
  }

 private:
  struct Unfinished {
    Mutex mutex;
    std::multiset<std::string> tenants CHAINFLEET_GUARDED_BY(mutex);  // one entry for each read that waits or runs
  };

  const size_t width_;
  BoundedExecutor turns_;
  const std::shared_ptr<Unfinished> unfinished_ = std::make_shared<Unfinished>();
};

}  // namespace chainfleet
