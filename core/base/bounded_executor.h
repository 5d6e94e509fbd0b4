// An Executor of bounded width.
#pragma once

#include <functional>
#include <memory>

#include "core/base/executor.h"

namespace chainfleet {

// At most `width` tasks at a time on another executor, begun in the order they came: work that may block leaves the
// other threads to the rest. Thread-safe. Tasks hold a shared state, so it may be destroyed while some still wait;
// those still run.
class BoundedExecutor final : public Executor {
 public:
  // `width` >= 1.
  BoundedExecutor(Executor* executor, int width);
  void Schedule(std::function<void()> task) override;
  void ScheduleAfter(absl::Duration delay, std::function<void()> task) override;

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
};

}  // namespace chainfleet
