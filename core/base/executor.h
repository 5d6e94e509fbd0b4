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

// Runs its tasks one at a time in the order they came, on another executor: a lock without a lock. Thread-safe.
// Tasks hold a shared state, so the Strand may be destroyed while some still wait; those still run.
class Strand final : public Executor {
 public:
  explicit Strand(Executor* executor);
  void Schedule(std::function<void()> task) override;
  void ScheduleAfter(absl::Duration delay, std::function<void()> task) override;

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
};

}  // namespace chainfleet
