#include "core/base/executor.h"

#include <deque>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/check.h"
#include "core/base/mutex.h"

namespace chainfleet {

struct BoundedExecutor::Queue {
  Queue(Executor* target, int width) : executor(target), free_turns(width) {}

  Executor* const executor;
  Mutex mutex;
  std::deque<std::function<void()>> tasks CHAINFLEET_GUARDED_BY(mutex);
  int free_turns CHAINFLEET_GUARDED_BY(mutex);

  static void Push(const std::shared_ptr<Queue>& queue, std::function<void()> task) {
    {
      MutexLock lock(&queue->mutex);
      queue->tasks.push_back(std::move(task));
      if (queue->free_turns == 0) return;
      --queue->free_turns;
    }
    ScheduleTurn(queue);
  }

  // If there is no memory for it, the process ends: without the turn, later tasks could wait forever.
  static void ScheduleTurn(const std::shared_ptr<Queue>& queue) noexcept {
    queue->executor->Schedule([queue] { RunOne(queue); });
  }

  // One task per turn, so that a busy queue does not hold a thread of the pool forever.
  static void RunOne(const std::shared_ptr<Queue>& queue) {
    std::function<void()> task;
    {
      MutexLock lock(&queue->mutex);
      if (queue->tasks.empty()) {  // another turn took the task
        ++queue->free_turns;
        return;
      }
      task = std::move(queue->tasks.front());
      queue->tasks.pop_front();
    }
    const absl::Cleanup next = [&queue] { EndTurn(queue); };  // also if the task has no memory
    task();
  }

  static void EndTurn(const std::shared_ptr<Queue>& queue) {
    {
      MutexLock lock(&queue->mutex);
      if (queue->tasks.empty()) {
        ++queue->free_turns;
        return;
      }
    }
    ScheduleTurn(queue);
  }
};

BoundedExecutor::BoundedExecutor(Executor* executor, int width) : queue_(std::make_shared<Queue>(executor, width)) {
  CHAINFLEET_CHECK(width >= 1) << "nothing would ever run";
}

void BoundedExecutor::Schedule(std::function<void()> task) { Queue::Push(queue_, std::move(task)); }

void BoundedExecutor::ScheduleAfter(absl::Duration delay, std::function<void()> task) {
  queue_->executor->ScheduleAfter(
      delay, [queue = queue_, task = std::move(task)]() mutable { Queue::Push(queue, std::move(task)); });
}

}  // namespace chainfleet
