// What users' uploads may take of a server, all together: memory, and turns at reading data sets by URI.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/byte_budget.h"
#include "core/base/executor.h"
#include "core/base/status.h"

namespace chainfleet {

// What one upload holds of the bytes that all of them may, given back when this is destroyed. Not thread-safe.
class UploadShare {
 public:
  explicit UploadShare(const ByteBudget* budget) : max_bytes_(budget->max_bytes()), share_(*budget) {}

  // RESOURCE_EXHAUSTED / UPLOADS_FULL: the others hold too much; nothing is added then.
  absl::Status Add(int64_t bytes);

 private:
  const int64_t max_bytes_;
  ByteShare share_;
};

// Thread-safe. Work that was taken runs even if this is destroyed meanwhile.
class DatasetReads {
 public:
  // At most `width` at a time, on `executor`.
  DatasetReads(Executor* executor, int width) : width_(width), turns_(executor, width) {}

  // RESOURCE_EXHAUSTED / UPLOADS_FULL: limits::kWaitingDatasetReads wait already, and `read` is dropped.
  absl::Status Schedule(std::function<void()> read);
  // How many wait or run.
  int unfinished() const { return *unfinished_; }

 private:
  const int width_;
  BoundedExecutor turns_;
  const std::shared_ptr<std::atomic<int>> unfinished_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace chainfleet
