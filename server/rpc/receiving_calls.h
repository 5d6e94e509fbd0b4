// Calls whose request is still being received. Many may begin at once, few may be slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// Thread-safe.
class ReceivingCalls {
 public:
  // A fleet's requests come in bursts, and each is whole at once; a caller who holds the server's memory sends slowly.
  // Therefore `most_slow` bounds only the calls that are still receiving after a whole interval between two calls of
  // Watch. `most` bounds all.
  ReceivingCalls(size_t most_slow, size_t most) : most_slow_(most_slow), most_(most) {}

  // Admits a call. `cancel` runs at most once, outside of the lock, until End.
  using Cancel = std::function<void(const absl::Status& why)>;
  uint64_t Begin(const std::string& connection, absl::Duration now, Cancel cancel);

  // Once for each Begin. The reason, if the call was cancelled here.
  absl::Status End(uint64_t id);

  // To be called every kReceiveInterval while a call is received. Cancels the calls that began before `oldest`, and the
  // slow ones beyond their bound. Returns the number of calls that are left.
  size_t Watch(absl::Duration oldest);

 private:
  struct Call {
    std::string connection;
    absl::Duration began;
    Cancel cancel;
  };
  using Calls = std::map<uint64_t, Call>;

  struct Cancelled {
    Cancel cancel;
    absl::Status why;
  };

  // Cancels calls of those up to the id `last` until `most` of them are left: the connection with the most of them
  // loses its oldest, so that a caller with one call does not suffer from a caller with many.
  void Trim(uint64_t last, size_t most, std::vector<Cancelled>* cancelled) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Cancelled Drop(Calls::iterator call, absl::Status why) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_slow_, most_;
  Mutex mutex_;
  uint64_t last_id_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  uint64_t last_watched_ CHAINFLEET_GUARDED_BY(mutex_) = 0;                 // last_id_ when Watch was last called
  Calls calls_ CHAINFLEET_GUARDED_BY(mutex_);                               // from the oldest
  std::map<uint64_t, absl::Status> dropped_ CHAINFLEET_GUARDED_BY(mutex_);  // until their End
};

}  // namespace chainfleet
