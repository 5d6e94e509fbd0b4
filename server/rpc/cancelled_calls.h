// Finds connections whose clients cancel too many calls.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace chainfleet {

// Remembers connections for one window. Thread-safe.
class CancelledCalls {
 public:
  // Allows `most` cancelled calls of a connection in each `window`.
  CancelledCalls(int most, absl::Duration window) : most_(most), window_(window) {}

  // Counts a call of `connection` that was cancelled at `now`. True for the first call beyond the bound.
  bool Count(const std::string& connection, absl::Duration now) {
    const MutexLock lock(&mutex_);
    if (now - began_ >= window_) {
      began_ = now;
      counts_.clear();
    }
    return ++counts_[connection] == most_ + 1;
  }

 private:
  const int most_;
  const absl::Duration window_;
  Mutex mutex_;
  absl::Duration began_ CHAINFLEET_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  std::map<std::string, int> counts_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
