#include "core/base/executor.h"

#include <deque>
#include <utility>

#include "core/base/mutex.h"

namespace chainfleet {

struct Strand::Queue {
  explicit Queue(Executor* target) : executor(target) {}

  Executor* const executor;
  Mutex mutex;
  std::deque<std::function<void()>> tasks CHAINFLEET_GUARDED_BY(mutex);
  bool running CHAINFLEET_GUARDED_BY(mutex) = false;

  static void Push(const std::shared_ptr<Queue>& queue, std::function<void()> task) {
    {
      MutexLock lock(&queue->mutex);
      queue->tasks.push_back(std::move(task));
      if (std::exchange(queue->running, true)) return;
    }
    queue->executor->Schedule([queue] { RunOne(queue); });
  }

  // One task per turn, so that a busy strand does not hold a thread of the pool for ever.
  static void RunOne(const std::shared_ptr<Queue>& queue) {
    std::function<void()> task;
    {
      MutexLock lock(&queue->mutex);
      task = std::move(queue->tasks.front());
      queue->tasks.pop_front();
    }
    task();
    {
      MutexLock lock(&queue->mutex);
      if (queue->tasks.empty()) {
        queue->running = false;
        return;
      }
    }
    queue->executor->Schedule([queue] { RunOne(queue); });
  }
};

Strand::Strand(Executor* executor) : queue_(std::make_shared<Queue>(executor)) {}

void Strand::Schedule(std::function<void()> task) { Queue::Push(queue_, std::move(task)); }

void Strand::ScheduleAfter(absl::Duration delay, std::function<void()> task) {
  queue_->executor->ScheduleAfter(
      delay, [queue = queue_, task = std::move(task)]() mutable { Queue::Push(queue, std::move(task)); });
}

}  // namespace chainfleet
