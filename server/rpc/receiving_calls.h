// Bounds the bytes of requests that are still being received.
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

// gRPC does not tell how much of a request has arrived. Each call is therefore charged with the bytes that its
// connection has received since the call began, plus kReceivingCallBytes. A fleet's burst of small requests costs
// little, and a client that holds the server's memory with unfinished requests pays for all of it. Thread-safe.
class ReceivingCalls {
 public:
  // `received`: bytes that a connection has received since it was accepted, 0 if unknown.
  ReceivingCalls(int64_t budget, std::function<int64_t(const std::string& connection)> received)
      : budget_(budget), received_(std::move(received)) {}

  // Registers a call. `cancel` runs at most once, outside the lock, before End.
  using Cancel = std::function<void(const absl::Status& why)>;
  uint64_t Begin(const std::string& connection, absl::Duration now, Cancel cancel);

  // Called once for each Begin. Returns the reason if the call was cancelled here.
  absl::Status End(uint64_t id);

  // Called every kReceiveInterval while a call is being received. Cancels the calls that took too long. If the calls
  // that began before the last Watch are over the budget, Watch cancels those with the highest product of bytes and
  // age. Returns the number of calls left.
  size_t Watch(absl::Duration now);

 private:
  struct Call {
    std::string connection;
    absl::Duration began;
    int64_t received;  // by the connection, before the call began
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
  uint64_t last_watched_ CHAINFLEET_GUARDED_BY(mutex_) = 0;                 // last_id_ at the last Watch
  Calls calls_ CHAINFLEET_GUARDED_BY(mutex_);                               // oldest first
  std::map<uint64_t, absl::Status> dropped_ CHAINFLEET_GUARDED_BY(mutex_);  // cancelled here, until their End
};

}  // namespace chainfleet
