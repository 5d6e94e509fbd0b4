#include "server/intake/object_checks.h"

#include <deque>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/mutex.h"

namespace chainfleet {

struct ObjectChecks::Queue {
  struct Waiting {
    std::function<bool()> wanted;
    std::function<void()> check;
  };

  Queue(Executor* target, int width, size_t most) : executor(target), most_waiting(most), free_turns(width) {}

  Executor* const executor;
  const size_t most_waiting;
  Mutex mutex;
  std::deque<Waiting> waiting CHAINFLEET_GUARDED_BY(mutex);
  int free_turns CHAINFLEET_GUARDED_BY(mutex);

  // Removes unwanted checks. The caller destroys them without the lock.
  std::vector<Waiting> TakeUnwanted() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto first =
        std::stable_partition(waiting.begin(), waiting.end(), [](const Waiting& one) { return one.wanted(); });
    std::vector<Waiting> unwanted(std::make_move_iterator(first), std::make_move_iterator(waiting.end()));
    waiting.erase(first, waiting.end());
    return unwanted;
  }

  // If there is no memory for it, the process ends: without the turn, later checks could wait forever.
  static void ScheduleTurn(const std::shared_ptr<Queue>& queue) noexcept {
    queue->executor->Schedule([queue] { RunOne(queue); });
  }

  // Runs one check per task, so that a busy queue does not occupy a thread of the pool forever.
  static void RunOne(const std::shared_ptr<Queue>& queue) {
    Waiting next;
    {
      MutexLock lock(&queue->mutex);
      if (queue->waiting.empty()) {
        ++queue->free_turns;
        return;
      }
      next = std::move(queue->waiting.front());
      queue->waiting.pop_front();
    }
    const absl::Cleanup end_turn = [&queue] { ScheduleTurn(queue); };  // also if the check has no memory
    if (next.wanted()) next.check();
  }
};

ObjectChecks::ObjectChecks(Executor* executor, int width, size_t most_waiting)
    : queue_(std::make_shared<Queue>(executor, width, most_waiting)) {
  CHAINFLEET_CHECK(width >= 1) << "nothing would ever be looked for";
}

absl::Status ObjectChecks::Schedule(std::function<bool()> wanted, std::function<void()> check) {
  std::vector<Queue::Waiting> unwanted;
  {
    MutexLock lock(&queue_->mutex);
    if (queue_->waiting.size() >= queue_->most_waiting) unwanted = queue_->TakeUnwanted();
    if (queue_->waiting.size() >= queue_->most_waiting) {
      return BoundReached("object_checks",
                          absl::StrCat(queue_->most_waiting,
                                       " commits wait already until their objects are looked for: repeat with backoff, "
                                       "nothing is lost"),
                          "QUEUE_FULL");
    }
    queue_->waiting.push_back({std::move(wanted), std::move(check)});
    if (queue_->free_turns == 0) return absl::OkStatus();
    --queue_->free_turns;
  }
  Queue::ScheduleTurn(queue_);
  return absl::OkStatus();
}

}  // namespace chainfleet
