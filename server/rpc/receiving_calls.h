// Calls whose request is still being received, within a budget of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// Thread-safe. gRPC does not tell how much of a request is there. A call is therefore charged with what its connection
// has brought since the call began, and with kReceivingCallBytes for itself: a fleet's burst of small requests costs
// little, and whoever holds the server's memory with unfinished ones pays for all of it.
class ReceivingCalls {
 public:
  // `received`: bytes that a connection has brought since it was accepted, 0 if that is not known.
  ReceivingCalls(int64_t budget, std::function<int64_t(const std::string& connection)> received)
      : budget_(budget), received_(std::move(received)) {}

  // Admits a call. `cancel` runs at most once, outside of the lock, until End.
  using Cancel = std::function<void(const absl::Status& why)>;
  uint64_t Begin(const std::string& connection, absl::Duration now, Cancel cancel);

  // Once for each Begin. The reason, if the call was cancelled here.
  absl::Status End(uint64_t id);

  // To be called every kReceiveInterval while a call is received. Cancels the calls that took too long. If those that
  // began before the last Watch are over the budget, it cancels the ones that hold the most for the longest. Returns
  // the number of calls that are left.
  size_t Watch(absl::Duration now);

 private:
  struct Call {
    std::string connection;
    absl::Duration began;
    int64_t received;  // by the connection until then
    Cancel cancel;
  };
  using Calls = std::map<uint64_t, Call>;
  struct Cancelled {
    Cancel cancel;
    absl::Status why;
  };

  void KeepToBudget(absl::Duration now, std::vector<Cancelled>* cancelled) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Cancelled Drop(Calls::iterator call, absl::Status why) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t budget_;
  const std::function<int64_t(const std::string&)> received_;
  Mutex mutex_;
  uint64_t last_id_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  uint64_t last_watched_ CHAINFLEET_GUARDED_BY(mutex_) = 0;                 // last_id_ when Watch was last called
  Calls calls_ CHAINFLEET_GUARDED_BY(mutex_);                               // from the oldest
  std::map<uint64_t, absl::Status> dropped_ CHAINFLEET_GUARDED_BY(mutex_);  // until their End
};

}  // namespace chainfleet
