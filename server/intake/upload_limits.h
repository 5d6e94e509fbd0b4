// Bounds on all uploads of users together: memory, and concurrent reads of data sets by URI.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/byte_budget.h"
#include "core/base/executor.h"
#include "core/base/status.h"

namespace chainfleet {

// One upload's share of the bytes that all uploads may hold; the destructor returns it. Not thread-safe.
class UploadShare {
 public:
  explicit UploadShare(const ByteBudget* budget) : max_bytes_(budget->max_bytes()), share_(*budget) {}

  // RESOURCE_EXHAUSTED / UPLOADS_FULL: other uploads hold too much, and nothing is added.
  absl::Status Add(int64_t bytes);

 private:
  const int64_t max_bytes_;
  ByteShare share_;
};

// Scheduled reads run even if this object is destroyed meanwhile. Thread-safe.
class DatasetReads {
 public:
  // Runs at most `width` reads at a time on `executor`.
  DatasetReads(Executor* executor, int width) : width_(width), turns_(executor, width) {}

  // RESOURCE_EXHAUSTED / UPLOADS_FULL: limits::kWaitingDatasetReads already wait, and `read` is dropped.
  absl::Status Schedule(std::function<void()> read);
  // Number of reads that wait or run.
  int unfinished() const { return *unfinished_; }

 private:
  const int width_;
  BoundedExecutor turns_;
  const std::shared_ptr<std::atomic<int>> unfinished_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace chainfleet
