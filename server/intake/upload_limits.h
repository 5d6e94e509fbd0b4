// Bounds on all uploads of users together: memory, and concurrent reads of data sets by URI.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/base/executor.h"
#include "core/base/fair_budget.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// One upload's share of the memory of all uploads; the destructor returns it. Not thread-safe.
class UploadShare {
 public:
  // `tenant` is empty on a server without tokens: only the bound of all uploads counts.
  explicit UploadShare(const FairBudget* budget, std::string tenant = "")
      : budget_(*budget), share_(budget_, std::move(tenant)) {}

  const std::string& tenant() const { return share_.holder(); }
  // RESOURCE_EXHAUSTED / UPLOADS_FULL: other uploads hold too much; TENANT_LIMIT: those of this tenant do. The upload
  // must end then.
  absl::Status Add(int64_t bytes);

 private:
  const FairBudget budget_;
  BudgetShare share_;
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
