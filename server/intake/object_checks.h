// The turns at looking for the objects of commits. They may take as long as a store of objects that has fallen silent
// keeps its callers waiting, and commits come again and again meanwhile: they have threads of their own, and a bound.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/base/executor.h"
#include "core/base/status.h"

namespace chainfleet {

// Each holds its commit, of a few KiB and a resume point of at most limits::kInlineResumePointBytes.
inline constexpr size_t kWaitingObjectChecks = 1024;

// Thread-safe. Checks that were taken run even if this is destroyed meanwhile.
class ObjectChecks {
 public:
  // At most `width` at a time, on `executor`, while `most_waiting` wait.
  ObjectChecks(Executor* executor, int width, size_t most_waiting = kWaitingObjectChecks);

  // Runs `check` once, in the order in which they came, but if `wanted` says no by then: that one is dropped, and
  // leaves its place as soon as another needs it. RESOURCE_EXHAUSTED / QUEUE_FULL: no place is free, `check` is
  // dropped.
  absl::Status Schedule(std::function<bool()> wanted, std::function<void()> check);

 private:
  struct Queue;
  const std::shared_ptr<Queue> queue_;
};

}  // namespace chainfleet
