#include "tests/sim/process.h"

#include <utility>

namespace chainfleet {

Process::Process(std::string name, FakeClock* time, ManualExecutor* loop, Dice* dice)
    : name_(std::move(name)),
      time_(time),
      loop_(loop),
      dice_(dice),
      rate_(1 + 0.001 * static_cast<double>(dice->Between(-20, 20))),
      origin_(dice->Between(absl::ZeroDuration(), absl::Hours(1000))) {}

void Process::ScheduleAfter(absl::Duration delay, std::function<void()> task) {
  if (!alive_) return;
  loop_->ScheduleAfter(delay / rate_ + Lateness(), [this, task = std::move(task)] { Run(task); });
}

void Process::Run(const std::function<void()>& task) {
  if (!alive_) return;
  if (stopped_) {
    backlog_.push_back(task);
  } else {
    task();
  }
}

void Process::Continue() {
  stopped_ = false;
  for (std::function<void()>& task : std::exchange(backlog_, {})) Schedule(std::move(task));
}

// Threads usually run at once, and sometimes late.
absl::Duration Process::Lateness() {
  if (!dice_->OneIn(32)) return absl::Microseconds(dice_->Between(0, 500));
  return absl::Milliseconds(dice_->Between(1, 50));
}

}  // namespace chainfleet
