// Calls whose request is still being received: a bounded number, whatever their clients do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// Thread-safe.
class ReceivingCalls {
 public:
  // At most `most` >= 2 calls at a time.
  explicit ReceivingCalls(size_t most) : most_(most) {}

  // Admits a call. If there are too many now, the connection with the most of them loses its oldest: a caller with one
  // call never waits for a caller with many. `cancel` runs at most once, outside of the lock, until End.
  using Cancel = std::function<void(const absl::Status& why)>;
  uint64_t Begin(const std::string& connection, absl::Duration now, Cancel cancel);

  // Once for each Begin. The reason, if the call was cancelled here.
  absl::Status End(uint64_t id);

  // Cancels those that began before `time`; returns how many are left.
  size_t CancelOlderThan(absl::Duration time);

 private:
  struct Call {
    std::string connection;
    absl::Duration began;
    Cancel cancel;
  };
  using Calls = std::map<uint64_t, Call>;

  Calls::iterator OldestOfTheBusiest() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Cancel Drop(Calls::iterator call, const absl::Status& why) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_;
  Mutex mutex_;
  uint64_t last_id_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  Calls calls_ CHAINFLEET_GUARDED_BY(mutex_);  // from the oldest
  std::map<std::string, size_t> of_connection_ CHAINFLEET_GUARDED_BY(mutex_);
  std::map<uint64_t, absl::Status> dropped_ CHAINFLEET_GUARDED_BY(mutex_);  // until their End
};

}  // namespace chainfleet
