// Addresses that sent no token or a wrong one: their calls are logged, counted and answered with growing delay.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/store/audit_log/audit_log.h"
#include "server/rpc/audit_rate.h"

namespace chainfleet {

// Remembers at most limits::kRefusedPeers hosts. Thread-safe.
class RefusedPeers {
 public:
  explicit RefusedPeers(AuditLog* audit = nullptr) : audit_(audit) {}  // may be null

  // Counts a refused token of the peer's host (HostOf) at `now` and returns how long to delay the answer. Logs a host's
  // first refusal, then at most one line each 10 s with the number of refusals since the last line, in the audit log,
  // too. An AuditRate bounds the lines of all hosts together; the next line says how many were left out.
  absl::Duration Refuse(const std::string& peer, absl::Duration now);

 private:
  struct Host {
    double refusals = 0;  // decreases by one each second
    absl::Duration at, logged = -absl::InfiniteDuration();
    int unlogged = 0;
  };
  void Forget() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  AuditLog* const audit_;
  AuditRate lines_;
  Mutex mutex_;
  std::map<std::string, Host> hosts_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
