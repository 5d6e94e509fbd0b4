// Connections whose clients cancel calls in masses.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace chainfleet {

// Thread-safe. It remembers connections for one window.
class CancelledCalls {
 public:
  // At most `most` calls of a connection in each `window`.
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
