// An Executor that runs nothing until a test says so: in order, or in an order drawn from a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {

// Thread-safe; tasks run in the thread that calls Run*. Tasks left over are dropped with it.
class ManualExecutor final : public Executor {
 public:
  // Without a seed tasks run by due time, then in the order they came; with one, any due task may be next.
  explicit ManualExecutor(FakeClock* clock, std::optional<uint64_t> seed = std::nullopt) : clock_(clock) {
    if (seed) random_.emplace(*seed);
  }

  void Schedule(std::function<void()> task) override { ScheduleAfter(absl::ZeroDuration(), std::move(task)); }

  void ScheduleAfter(absl::Duration delay, std::function<void()> task) override {
    const absl::Duration due = clock_->Monotonic() + std::max(delay, absl::ZeroDuration());
    MutexLock lock(&mutex_);
    tasks_.push_back({due, next_sequence_++, std::move(task)});
  }

  // Runs one due task; false if there is none.
  bool RunOne() {
    std::function<void()> task;
    {
      const absl::Duration now = clock_->Monotonic();
      MutexLock lock(&mutex_);
      const std::optional<size_t> index = Choose(now);
      if (!index) return false;
      task = std::move(tasks_[*index].run);
      tasks_.erase(tasks_.begin() + static_cast<int64_t>(*index));
    }
    task();
    return true;
  }

  // Until nothing is due, without moving the clock. Returns the number of tasks run; stops at `limit`.
  int RunUntilIdle(int limit = 1'000'000) {
    int count = 0;
    while (count < limit && RunOne()) ++count;
    return count;
  }

  // Moves the clock to each due time in turn, running what is due, until `duration` has passed.
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

  // Forgets what waits: the process it belonged to is dead.
  void DropAll() {
    MutexLock lock(&mutex_);
    tasks_.clear();
  }

  // Monotonic time of the next task; none if there is no task.
  std::optional<absl::Duration> NextDue() const {
    MutexLock lock(&mutex_);
    std::optional<absl::Duration> next;
    for (const Task& task : tasks_) {
      if (!next || task.due < *next) next = task.due;
    }
    return next;
  }

  size_t num_tasks() const {
    MutexLock lock(&mutex_);
    return tasks_.size();
  }

 private:
  struct Task {
    absl::Duration due;
    uint64_t sequence;
    std::function<void()> run;
  };

  std::optional<size_t> Choose(absl::Duration now) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<size_t> due;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].due <= now) due.push_back(i);
    }
    if (due.empty()) return std::nullopt;
    if (random_) return due[(*random_)() % due.size()];
    size_t best = due.front();
    for (const size_t i : due) {
      if (std::pair(tasks_[i].due, tasks_[i].sequence) < std::pair(tasks_[best].due, tasks_[best].sequence)) best = i;
    }
    return best;
  }

  FakeClock* const clock_;
  mutable Mutex mutex_;
  std::vector<Task> tasks_ CHAINFLEET_GUARDED_BY(mutex_);
  uint64_t next_sequence_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  std::optional<std::mt19937_64> random_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
