// Runs tasks. The executor is a parameter below floor 6: threads in production, one seeded loop in the simulator.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace chainfleet {

// Thread-safe. Tasks run in no promised order, and never inside the call that schedules them.
class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `task` once, soon.
  virtual void Schedule(std::function<void()> task) = 0;

  // Runs `task` once, not before `delay` has passed on the monotonic clock.
  virtual void ScheduleAfter(absl::Duration delay, std::function<void()> task) = 0;
};

// Runs at most `width` tasks at a time on another executor, in order of arrival, so that blocking work leaves threads
// to other work. Thread-safe. Tasks own the shared state: the object may be destroyed while tasks wait, and these tasks
// still run.
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

// Runs its tasks one at a time in order of arrival, so the tasks need no lock against each other.
class Strand final : public BoundedExecutor {
 public:
  explicit Strand(Executor* executor) : BoundedExecutor(executor, 1) {}
};

}  // namespace chainfleet
