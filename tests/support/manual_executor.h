// An Executor that runs tasks only when a test calls it: by due time, ties in order or in a seeded random order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <utility>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {

// Thread-safe; tasks run in the thread that calls Run*. The destructor drops waiting tasks.
class ManualExecutor final : public Executor {
 public:
  // Tasks run by due time. Tasks due at the same time run in order of arrival, or in random order with a seed.
  explicit ManualExecutor(FakeClock* clock, std::optional<uint64_t> seed = std::nullopt) : clock_(clock) {
    if (seed) random_.emplace(*seed);
  }

  void Schedule(std::function<void()> task) override { ScheduleAfter(absl::ZeroDuration(), std::move(task)); }

  void ScheduleAfter(absl::Duration delay, std::function<void()> task) override {
    const absl::Duration due = clock_->Monotonic() + std::max(delay, absl::ZeroDuration());
    MutexLock lock(&mutex_);
    tasks_.emplace(Key{due, random_ ? (*random_)() : 0, next_sequence_++}, std::move(task));
  }

  // Runs one due task; returns false if none is due.
  bool RunOne() {
    std::function<void()> task;
    {
      const absl::Duration now = clock_->Monotonic();
      MutexLock lock(&mutex_);
      const auto first = tasks_.begin();
      if (first == tasks_.end() || std::get<absl::Duration>(first->first) > now) return false;
      task = std::move(first->second);
      tasks_.erase(first);
    }
    task();
    return true;
  }

  // Runs tasks until none is due, without moving the clock. Returns the number of tasks run; stops at `limit`.
  int RunUntilIdle(int limit = 1'000'000) {
    int count = 0;
    while (count < limit && RunOne()) ++count;
    return count;
  }

  // Moves the clock to each due time in turn and runs the due tasks, until `duration` has passed.
  void RunFor(absl::Duration duration) {
    const absl::Duration end = clock_->Monotonic() + duration;
    for (;;) {
      RunUntilIdle();
      const std::optional<absl::Duration> next = NextDue();
      if (!next || *next > end) break;
      clock_->Advance(*next - clock_->Monotonic());
    }
    clock_->Advance(end - clock_->Monotonic());
    RunUntilIdle();
  }

  // Drops the waiting tasks, as when their process dies.
  void DropAll() {
    MutexLock lock(&mutex_);
    tasks_.clear();
  }

  // Returns the monotonic time of the next task; nullopt if there is no task.
  std::optional<absl::Duration> NextDue() const {
    MutexLock lock(&mutex_);
    if (tasks_.empty()) return std::nullopt;
    return std::get<absl::Duration>(tasks_.begin()->first);
  }

  size_t num_tasks() const {
    MutexLock lock(&mutex_);
    return tasks_.size();
  }

 private:
  using Key = std::tuple<absl::Duration, uint64_t, uint64_t>;  // due time, random number, sequence

  FakeClock* const clock_;
  mutable Mutex mutex_;
  std::map<Key, std::function<void()>> tasks_ CHAINFLEET_GUARDED_BY(mutex_);
  uint64_t next_sequence_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  std::optional<std::mt19937_64> random_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
