// A byte-limited LRU cache of loaded values by key. Concurrent requests for one key share one load.
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

namespace chainfleet {

// Thread-safe. A value lives as long as its users; the limit counts only the values that the cache holds. Errors go to
// the waiting callers and are not kept: the next Get loads again. REQUIRES: the cache outlives its loads.
template <typename T>
class LoadingCache {
 public:
  template <typename Value>
  using Done = std::function<void(absl::StatusOr<Value>)>;
  // The result of a load: the value, which the callers share, and the bytes that count against the limit.
  struct Loaded {
    std::shared_ptr<const T> value;
    int64_t bytes = 0;
  };
  // Starts a load. Calls back once, from any thread, never before Load returns. Runs in Get, off the cache's lock.
  using Load = std::function<void(Done<Loaded>)>;

  // Does not keep a value that is larger than the whole capacity. `executor` is not owned.
  LoadingCache(int64_t capacity_bytes, Executor* executor) : capacity_bytes_(capacity_bytes), executor_(executor) {}

  // Counts since the start: requested keys that were cached or being loaded, and keys that had to be loaded.
  struct Counts {
    int64_t hits = 0, misses = 0;
  };

  // `done` runs once, never inside this call: on the executor for a cached value, else where `load` calls back. `load`
  // runs if the key is neither cached nor being loaded, so all callers for one key must pass equivalent loads. Each
  // waiting caller gets the load's error unchanged.
  void Get(const std::string& key, const Load& load, Done<std::shared_ptr<const T>> done) {
    std::shared_ptr<Waiting> waiting;
    {
      MutexLock lock(&mutex_);
      const auto it = entries_.find(key);
      if (it != entries_.end()) {
        ++counts_.hits;
        order_.splice(order_.begin(), order_, it->second.position);
        executor_->Schedule([value = it->second.loaded.value, done = std::move(done)] { done(value); });
        return;
      }
      std::shared_ptr<Waiting>& loading = loading_[key];
      ++(loading == nullptr ? counts_.misses : counts_.hits);
      if (loading != nullptr) return loading->push_back(std::move(done));
      loading = waiting = std::make_shared<Waiting>(Waiting{std::move(done)});
    }
    load([this, key, waiting](absl::StatusOr<Loaded> loaded) { OnLoaded(key, waiting, std::move(loaded)); });
  }

  // Returns the cached value with the last key before `key` among those that begin with `prefix`; null if there is
  // none.
  std::shared_ptr<const T> Before(const std::string& key, const std::string& prefix) const {
    MutexLock lock(&mutex_);
    auto it = entries_.lower_bound(key);
    return it != entries_.begin() && (--it)->first.starts_with(prefix) ? it->second.loaded.value : nullptr;
  }

  // Forgets the values whose keys begin with `prefix`. Started loads of such keys answer their waiting callers and are
  // not kept: a Get that begins after Drop never returns a value that was loaded before Drop.
  void Drop(const std::string& prefix) {
    std::vector<std::shared_ptr<const T>> dropped;  // destroyed off the lock
    MutexLock lock(&mutex_);
    const auto has_prefix = [&prefix](const auto& keyed) { return keyed->first.starts_with(prefix); };
    for (auto it = entries_.lower_bound(prefix); it != entries_.end() && has_prefix(it);) {
      dropped.push_back(Remove(it++));
    }
    for (auto it = loading_.lower_bound(prefix); it != loading_.end() && has_prefix(it);) it = loading_.erase(it);
  }

  Counts counts() const {
    MutexLock lock(&mutex_);
    return counts_;
  }

  // Returns the bytes of the cached values, at most the capacity. Values that only their users hold do not count.
  int64_t held_bytes() const {
    MutexLock lock(&mutex_);
    return held_bytes_;
  }

 private:
  struct Entry {
    Loaded loaded;
    std::list<std::string>::iterator position;
  };
  using Entries = std::map<std::string, Entry>;
  using Waiting = std::vector<Done<std::shared_ptr<const T>>>;  // guarded by mutex_ while the load is in `loading_`

  void OnLoaded(const std::string& key, const std::shared_ptr<Waiting>& waiting, absl::StatusOr<Loaded> loaded) {
    std::vector<std::shared_ptr<const T>> evicted;  // destroyed off the lock
    {
      MutexLock lock(&mutex_);
      const auto it = loading_.find(key);
      if (it != loading_.end() && it->second == waiting) {  // else Drop removed the load
        loading_.erase(it);
        if (loaded.ok() && loaded->bytes <= capacity_bytes_) evicted = Insert(key, *loaded);
      }
    }
    for (const auto& done : std::exchange(*waiting, {})) {
      if (loaded.ok()) {
        done(loaded->value);
      } else {
        done(loaded.status());
      }
    }
  }

  std::vector<std::shared_ptr<const T>> Insert(const std::string& key, const Loaded& loaded)
      CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    order_.push_front(key);
    entries_[key] = {loaded, order_.begin()};
    held_bytes_ += loaded.bytes;
    std::vector<std::shared_ptr<const T>> evicted;
    while (held_bytes_ > capacity_bytes_) evicted.push_back(Remove(entries_.find(order_.back())));
    return evicted;
  }

  std::shared_ptr<const T> Remove(typename Entries::iterator entry) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    held_bytes_ -= entry->second.loaded.bytes;
    order_.erase(entry->second.position);
    std::shared_ptr<const T> value = std::move(entry->second.loaded.value);
    entries_.erase(entry);
    return value;
  }

  const int64_t capacity_bytes_;
  Executor* const executor_;
  mutable Mutex mutex_;
  Entries entries_ CHAINFLEET_GUARDED_BY(mutex_);
  std::list<std::string> order_ CHAINFLEET_GUARDED_BY(mutex_);  // most recently used first
  std::map<std::string, std::shared_ptr<Waiting>> loading_ CHAINFLEET_GUARDED_BY(mutex_);
  int64_t held_bytes_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  Counts counts_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
