// Where work runs, as a parameter: threads in production, one seeded loop in the simulator.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace chainfleet {

// Thread-safe. Tasks run in no promised order and never inside the call that schedules them.
class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `task` once, soon.
  virtual void Schedule(std::function<void()> task) = 0;

  // Runs `task` once, not before `delay` has passed on the monotonic clock.
  virtual void ScheduleAfter(absl::Duration delay, std::function<void()> task) = 0;
};

// At most `width` tasks at a time on another executor, begun in the order they came: work that may block leaves the
// other threads to the rest. Thread-safe. Tasks hold a shared state, so it may be destroyed while some still wait;
// those still run.
class BoundedExecutor : public Executor {
 public:
  // `width` >= 1.
  BoundedExecutor(Executor* executor, int width);
  void Schedule(std::function<void()> task) override;
  void ScheduleAfter(absl::Duration delay, std::function<void()> task) override;

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
};

// Runs its tasks one at a time in the order they came: a lock without a lock.
class Strand final : public BoundedExecutor {
 public:
  explicit Strand(Executor* executor) : BoundedExecutor(executor, 1) {}
};

}  // namespace chainfleet
