// What users' uploads may take of a server, all together: memory, and turns at reading data sets by URI.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/status.h"

namespace chainfleet {

// The bytes that all uploads hold at once. Thread-safe; outlives its shares.
class UploadBudget {
 public:
  explicit UploadBudget(int64_t max_bytes = limits::kMaxUploadsBytes) : max_bytes_(max_bytes) {}
  int64_t held_bytes() const { return held_bytes_; }

 private:
  friend class UploadShare;
  const int64_t max_bytes_;
  std::atomic<int64_t> held_bytes_ = 0;
};

// What one upload holds of it, given back when this is destroyed. Not thread-safe.
class UploadShare {
 public:
  explicit UploadShare(UploadBudget* budget) : budget_(budget) {}
  ~UploadShare() { budget_->held_bytes_ -= bytes_; }
  UploadShare(const UploadShare&) = delete;
  UploadShare& operator=(const UploadShare&) = delete;

  // RESOURCE_EXHAUSTED / UPLOADS_FULL: the others hold too much; nothing is added then.
  absl::Status Add(int64_t bytes);

 private:
  UploadBudget* const budget_;
  int64_t bytes_ = 0;
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
