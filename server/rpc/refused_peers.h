// Addresses whose calls had no token, or a wrong one: they are logged, counted and answered later and later.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace chainfleet {

// The host of a gRPC peer: "ipv4:10.0.0.1:4711" is "ipv4:10.0.0.1".
std::string HostOf(const std::string& peer);

// Thread-safe. It remembers limits::kRefusedPeers hosts at most.
class RefusedPeers {
 public:
  // A refused token of `host` at `now`: how long to wait with the answer. Logs a host's first refusal and then one line
  // at most each 10 s, with the number of refusals since the last line.
  absl::Duration Refuse(const std::string& host, absl::Duration now);

 private:
  struct Host {
    double refusals = 0;  // less one each second
    absl::Duration at, logged = -absl::InfiniteDuration();
    int unlogged = 0;
  };
  void Forget(absl::Duration now) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::map<std::string, Host> hosts_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
