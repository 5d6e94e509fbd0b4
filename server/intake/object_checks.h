// A queue of checks that look for the objects of commits. A check may block as long as an unresponsive object store
// does, and commits keep arriving meanwhile. The checks therefore have their own threads and a bound.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/base/executor.h"
#include "core/base/status.h"

namespace chainfleet {

// Each waiting check holds its commit: a few KiB, and a resume point of at most limits::kInlineResumePointBytes.
inline constexpr size_t kWaitingObjectChecks = 1024;

// Scheduled checks run even if this object is destroyed meanwhile. Thread-safe.
class ObjectChecks {
 public:
  // Runs at most `width` checks at a time on `executor`, while at most `most_waiting` wait.
  ObjectChecks(Executor* executor, int width, size_t most_waiting = kWaitingObjectChecks);

  // Runs `check` once, in order of arrival, unless `wanted` returns false by then. An unwanted check is dropped, and
  // gives up its place as soon as another check needs it. RESOURCE_EXHAUSTED / QUEUE_FULL: no place is free and `check`
  // is dropped.
  absl::Status Schedule(std::function<bool()> wanted, std::function<void()> check);

 private:
  struct Queue;
  const std::shared_ptr<Queue> queue_;
};

}  // namespace chainfleet
