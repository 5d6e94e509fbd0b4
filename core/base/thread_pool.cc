#include "core/base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/log.h"

namespace chainfleet {

// Uses std::mutex, not Mutex: the timer waits on std::chrono::steady_clock, the clock that SystemClock::Monotonic
// reads.
struct ThreadPool::State {
  using TimePoint = std::chrono::steady_clock::time_point;

  std::mutex mutex;
  std::condition_variable wake;
  std::multimap<TimePoint, std::function<void()>> tasks;  // equal keys keep their order of arrival
  bool stopping = false;
  std::vector<std::thread> threads;

  void Push(TimePoint when, std::function<void()> task) {
    {
      std::lock_guard lock(mutex);
      tasks.emplace(when, std::move(task));
    }
    wake.notify_one();
  }

  void Run() {
    std::unique_lock lock(mutex);
    while (true) {
      const TimePoint now = std::chrono::steady_clock::now();
      if (!tasks.empty() && tasks.begin()->first <= now) {
        auto node = tasks.extract(tasks.begin());
        lock.unlock();
        try {
          node.mapped()();
        } catch (const std::bad_alloc&) {  // drop this task; other tasks go on
          Log(LogLevel::kError, "task failed", {{"reason", "out of memory"}});
        }
        node.mapped() = nullptr;  // destroys the captures off the lock
        lock.lock();
      } else if (stopping) {
        return;
      } else if (tasks.empty()) {
        wake.wait(lock);
      } else {
        wake.wait_until(lock, TimePoint(tasks.begin()->first));
      }
    }
  }
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  CHAINFLEET_CHECK(num_threads >= 1) << "a pool needs a thread";
  for (int i = 0; i < num_threads; ++i) state_->threads.emplace_back([this] { state_->Run(); });
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
  state_->threads.clear();
}

void ThreadPool::Schedule(std::function<void()> task) {
  state_->Push(std::chrono::steady_clock::now(), std::move(task));
}

void ThreadPool::ScheduleAfter(absl::Duration delay, std::function<void()> task) {
  const auto wait = absl::ToChronoNanoseconds(std::min(delay, absl::Hours(24 * 365)));
  state_->Push(std::chrono::steady_clock::now() + wait, std::move(task));
}

void PauseThread(absl::Duration duration) { std::this_thread::sleep_for(absl::ToChronoNanoseconds(duration)); }

}  // namespace chainfleet
