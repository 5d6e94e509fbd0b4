// Addresses that sent no token or a wrong one: their calls are logged, counted and answered with growing delay.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/store/audit_log/audit_log.h"

namespace chainfleet {

// Returns the host of a gRPC peer: "ipv4:10.0.0.1" for "ipv4:10.0.0.1:4711".
std::string HostOf(const std::string& peer);

// Remembers at most limits::kRefusedPeers hosts. Thread-safe.
class RefusedPeers {
 public:
  explicit RefusedPeers(AuditLog* audit = nullptr) : audit_(audit) {}  // may be null

  // Counts a refused token of `host` at `now` and returns how long to delay the answer. Logs a host's first refusal,
  // then at most one line each 10 s with the number of refusals since the last line, in the audit log, too.
  absl::Duration Refuse(const std::string& host, absl::Duration now);

 private:
  struct Host {
    double refusals = 0;  // decreases by one each second
    absl::Duration at, logged = -absl::InfiniteDuration();
    int unlogged = 0;
  };
  void Forget(absl::Duration now) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  AuditLog* const audit_;
  Mutex mutex_;
  std::map<std::string, Host> hosts_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
