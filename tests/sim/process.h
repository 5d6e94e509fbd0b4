// One process of the simulated fleet: executor and clock of its code, and its life cycle.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "tests/sim/dice.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {

// Its tasks run on the one loop, each a little late. For one thread; outlives all its tasks.
class Process final : public Executor, public Clock {
 public:
  Process(std::string name, FakeClock* time, ManualExecutor* loop, Dice* dice);

  void Schedule(std::function<void()> task) override { ScheduleAfter(absl::ZeroDuration(), std::move(task)); }
  void ScheduleAfter(absl::Duration delay, std::function<void()> task) override;

  // Returns the clock of its host, with its own origin and up to 2 % too fast or too slow.
  absl::Duration Monotonic() const override { return origin_ + time_->Monotonic() * rate_; }
  absl::Time Wall() const override { return time_->Wall() + wall_offset_; }
  void JumpWall(absl::Duration by) { wall_offset_ += by; }

  // SIGKILL: drops waiting and later tasks.
  void Kill() { alive_ = false; }
  bool alive() const { return alive_; }

  // SIGSTOP and SIGCONT: its tasks wait in between.
  void Stop() { stopped_ = true; }
  void Continue();
  bool stopped() const { return stopped_; }

  const std::string& name() const { return name_; }

 private:
  void Run(const std::function<void()>& task);
  absl::Duration Lateness();

  const std::string name_;
  FakeClock* const time_;
  ManualExecutor* const loop_;
  Dice* const dice_;
  const double rate_;
  const absl::Duration origin_;
  absl::Duration wall_offset_;
  bool alive_ = true, stopped_ = false;
  std::vector<std::function<void()>> backlog_;
};

}  // namespace chainfleet
