// A byte-limited LRU cache of loaded values by key; concurrent requests for one key share one load.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "worker/runtime/session/coordinator_port.h"

namespace chainfleet {

// Thread-safe. Values in use stay alive with their users; the limit counts what the cache itself holds. Errors go to
// the waiting callers and are not kept: the next Get loads again. REQUIRES: outlives its loads and scheduled tasks.
template <typename T>
class LoadingCache {
 public:
  // The result of a load: the value, which is then shared, and the bytes that it counts against the limit.
  struct Loaded {
    std::shared_ptr<const T> value;
    int64_t bytes = 0;
  };
  // Begins a load and calls back once, from any thread, never before it returns. Runs in Get, off the cache's lock.
  using Load = std::function<void(Done<Loaded>)>;

  // A value larger than the whole capacity is handed out but not kept. `executor` is not owned.
  LoadingCache(int64_t capacity_bytes, Executor* executor) : capacity_bytes_(capacity_bytes), executor_(executor) {}

  // Counts since the start: requested keys that were cached or being loaded, and keys that had to be loaded.
  struct Counts {
    int64_t hits = 0, misses = 0;
  };

  // `done` runs once, never inside this call: on the executor if the value is here, else where `load` calls back.
  // `load` runs if the value is neither here nor being loaded, so all callers for one key must pass equivalent
  // loads. Each waiting caller gets the load's error unchanged.
  void Get(const std::string& key, const Load& load, Done<std::shared_ptr<const T>> done) {
    {
      MutexLock lock(&mutex_);
      const auto it = entries_.find(key);
      if (it != entries_.end()) {
        ++counts_.hits;
        order_.splice(order_.begin(), order_, it->second.position);
        executor_->Schedule([value = it->second.loaded.value, done = std::move(done)] { done(value); });
        return;
      }
      auto& waiting = waiting_[key];
      waiting.push_back(std::move(done));
      ++(waiting.size() > 1 ? counts_.hits : counts_.misses);
      if (waiting.size() > 1) return;
    }
    load([this, key](absl::StatusOr<Loaded> loaded) { OnLoaded(key, std::move(loaded)); });
  }

  Counts counts() const {
    MutexLock lock(&mutex_);
    return counts_;
  }

  // Bytes of the values in the cache, at most the capacity. Values that only their users still hold are not counted.
  int64_t held_bytes() const {
    MutexLock lock(&mutex_);
    return held_bytes_;
  }

 private:
  struct Entry {
    Loaded loaded;
    std::list<std::string>::iterator position;
  };

  void OnLoaded(const std::string& key, absl::StatusOr<Loaded> loaded) {
    std::vector<Done<std::shared_ptr<const T>>> waiting;
    {
      MutexLock lock(&mutex_);
      waiting = std::move(waiting_[key]);
      waiting_.erase(key);
      if (loaded.ok() && loaded->bytes <= capacity_bytes_) Insert(key, *loaded);
    }
    for (const auto& done : waiting) {
      if (loaded.ok()) {
        done(loaded->value);
      } else {
        done(loaded.status());
      }
    }
  }

  void Insert(const std::string& key, const Loaded& loaded) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    order_.push_front(key);
    entries_[key] = {loaded, order_.begin()};
    held_bytes_ += loaded.bytes;
    while (held_bytes_ > capacity_bytes_) {
      const auto oldest = entries_.find(order_.back());
      held_bytes_ -= oldest->second.loaded.bytes;
      entries_.erase(oldest);
      order_.pop_back();
    }
  }

  const int64_t capacity_bytes_;
  Executor* const executor_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ CHAINFLEET_GUARDED_BY(mutex_);
  std::list<std::string> order_ CHAINFLEET_GUARDED_BY(mutex_);  // most recently used first
  std::map<std::string, std::vector<Done<std::shared_ptr<const T>>>> waiting_ CHAINFLEET_GUARDED_BY(mutex_);
  int64_t held_bytes_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  Counts counts_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
