#include "core/base/shared_work.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/mutex.h"

namespace chainfleet {
namespace {

// A helper that starts late finds no item left and does not touch `item`.
struct Items {
  Items(int64_t num_items, std::function<void(int64_t)> run) : count(num_items), item(std::move(run)) {}

  std::optional<int64_t> Take() {
    MutexLock lock(&mutex);
    if (next >= count) return std::nullopt;
    ++running;
    return next++;
  }
  void Run() {
    while (const std::optional<int64_t> i = Take()) {
      item(*i);
      MutexLock lock(&mutex);
      if (--running == 0) idle.SignalAll();
    }
  }
  void WaitUntilIdle() {
    MutexLock lock(&mutex);
    while (running > 0) idle.Wait(&mutex);
  }

  const int64_t count;
  const std::function<void(int64_t)> item;
  Mutex mutex;
  CondVar idle;
  int64_t next CHAINFLEET_GUARDED_BY(mutex) = 0, running CHAINFLEET_GUARDED_BY(mutex) = 0;
};

}  // namespace

void ShareWork(Executor* executor, int helpers, int64_t count, std::function<void(int64_t)> item) {
  const auto items = std::make_shared<Items>(count, std::move(item));
  for (int64_t i = 1; i < std::min<int64_t>(count, helpers + 1); ++i) executor->Schedule([items] { items->Run(); });
  items->Run();
  items->WaitUntilIdle();
}

}  // namespace chainfleet
