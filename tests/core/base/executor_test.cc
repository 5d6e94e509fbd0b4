#include "core/base/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <new>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/shared_work.h"
#include "core/base/thread_pool.h"

namespace chainfleet {
namespace {

TEST(ThreadPool, RunsEveryTaskBeforeItEnds) {
  std::atomic<int> ran = 0;
  {
    ThreadPool pool(4);
    for (int i = 0; i < 1000; ++i) pool.Schedule([&] { ++ran; });
  }
  EXPECT_EQ(ran, 1000);
}

TEST(ThreadPool, DropsWhatIsStillDelayedWhenItEnds) {
  bool ran = false;
  {
    ThreadPool pool(1);
    pool.ScheduleAfter(absl::Hours(1), [&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

TEST(ThreadPool, RunsTasksInTheOrderOfTheirTimes) {
  std::vector<int> order;
  {
    ThreadPool pool(1);
    pool.Schedule([&] {  // queues all before the one thread may run; times in the past depend on no timer
      pool.ScheduleAfter(-absl::Hours(1), [&] { order.push_back(2); });
      pool.ScheduleAfter(-absl::Hours(2), [&] { order.push_back(1); });
      pool.ScheduleAfter(-absl::Hours(1) + absl::Minutes(1), [&] { order.push_back(3); });
    });
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(ThreadPool, RunsADelayedTask) {
  ThreadPool pool(1);
  std::promise<void> done;
  pool.ScheduleAfter(absl::Milliseconds(1), [&] { done.set_value(); });
  done.get_future().wait();
}

TEST(Strand, RunsOneAtATimeInOrderOnManyThreads) {
  std::vector<int> order;  // unguarded on purpose: the strand is the lock
  {
    ThreadPool pool(4);
    Strand strand(&pool);
    for (int i = 0; i < 1000; ++i) strand.Schedule([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(Strand, MayDieWhileTasksWait) {
  std::atomic<int> ran = 0;
  {
    ThreadPool pool(2);
    {
      Strand strand(&pool);
      for (int i = 0; i < 100; ++i) strand.Schedule([&] { ++ran; });
    }
  }
  EXPECT_EQ(ran, 100);
}

TEST(BoundedExecutor, RunsEachTaskOnceHoweverItsTurnsRace) {
  constexpr int kTasks = 20'000;
  std::vector<std::atomic<int>> runs(kTasks);
  {
    ThreadPool pool(4);
    BoundedExecutor bounded(&pool, 3);
    for (int i = 0; i < kTasks; ++i) bounded.Schedule([&runs, i] { ++runs[i]; });
  }
  EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const std::atomic<int>& count) { return count == 1; }));
}

TEST(BoundedExecutor, LeavesTheOtherThreadsToTheRest) {
  ThreadPool pool(3);
  BoundedExecutor bounded(&pool, 2);
  Mutex mutex;
  CondVar changed;
  int inside = 0, most = 0, ran = 0;
  bool open = false;
  for (int i = 0; i < 10; ++i) {
    bounded.Schedule([&] {
      MutexLock lock(&mutex);
      most = std::max(most, ++inside);
      changed.SignalAll();
      while (!open) changed.Wait(&mutex);
      --inside;
      ++ran;
      changed.SignalAll();
    });
  }
  pool.Schedule([&] {  // runs although ten others came first
    MutexLock lock(&mutex);
    while (inside < 2) changed.Wait(&mutex);
    open = true;
    changed.SignalAll();
  });
  MutexLock lock(&mutex);
  while (ran < 10) changed.Wait(&mutex);
  EXPECT_EQ(most, 2);
}

// Takes tasks and runs none of them.
class IdleExecutor final : public Executor {
 public:
  void Schedule(std::function<void()> task) override { tasks.push_back(std::move(task)); }
  void ScheduleAfter(absl::Duration, std::function<void()> task) override { Schedule(std::move(task)); }
  std::vector<std::function<void()>> tasks;
};

TEST(ShareWork, RunsEachItemOnceOnManyThreads) {
  ThreadPool pool(4);
  for (const int64_t count : {0, 1, 3, 1000}) {
    std::vector<std::atomic<int>> runs(count);
    ShareWork(&pool, 3, count, [&](int64_t i) { ++runs[i]; });
    for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 1);
  }
}

TEST(ShareWork, HelpersWorkWhileTheCallerDoes) {
  ThreadPool pool(1);
  std::promise<void> other;
  ShareWork(&pool, 1, 2, [&, seen = other.get_future().share()](int64_t i) {
    if (i == 1) return other.set_value();
    seen.wait();
  });
}

TEST(ShareWork, WaitsForNoThreadThatHasNotBegun) {
  IdleExecutor idle;
  int64_t sum = 0;
  ShareWork(&idle, 7, 5, [&](int64_t i) { sum += i; });
  EXPECT_EQ(sum, 10);
  EXPECT_EQ(idle.tasks.size(), 4u);
  for (const auto& task : idle.tasks) task();
  EXPECT_EQ(sum, 10);
}

TEST(ThreadPool, OutlivesATaskThatRunsOutOfMemory) {
  bool ran = false;
  {
    ThreadPool pool(1);
    pool.Schedule([] { throw std::bad_alloc(); });
    pool.Schedule([&] { ran = true; });
  }
  EXPECT_TRUE(ran);
}

TEST(Strand, GoesOnAfterATaskThatRunsOutOfMemory) {
  bool ran = false;
  {
    ThreadPool pool(2);
    Strand strand(&pool);
    strand.Schedule([] { throw std::bad_alloc(); });
    strand.Schedule([&] { ran = true; });
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace chainfleet
