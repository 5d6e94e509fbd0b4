// Addresses whose calls or requests are refused before their caller is known: without a known token, or from a page of
// another site. The refusals are logged, counted and, on the gRPC port, answered with growing delay.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/metrics/page_server.h"
#include "core/store/audit_log/audit_log.h"
#include "server/rpc/audit_rate.h"

namespace chainfleet {

// Remembers at most limits::kRefusedPeers hosts. Thread-safe.
class RefusedPeers {
 public:
  // `audit` may be null. `event` is the message in the log. All hosts together get at most one line each `interval`,
  // after a burst.
  explicit RefusedPeers(AuditLog* audit = nullptr, std::string event = "token refused",
                        absl::Duration interval = limits::kAuditLineInterval)
      : audit_(audit), event_(std::move(event)), lines_(limits::kAuditLinesAtOnce, interval) {}

  // Counts a refusal of the peer's host (HostOf) at `now` and returns how long to delay the answer. Logs a host's first
  // refusal, then at most one line each 10 s with the number of refusals since the last line, in the audit log, too.
  // `details` are fields of that line. An AuditRate bounds the lines of all hosts together; the next line says how many
  // were left out.
  absl::Duration Refuse(const std::string& peer, absl::Duration now,
                        const std::vector<LogField>& details = {{"code", "UNAUTHENTICATED"}});

 private:
  struct Host {
    double refusals = 0;  // decreases by one each second
    absl::Duration at, logged = -absl::InfiniteDuration();
    int unlogged = 0;
  };
  void Forget() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  AuditLog* const audit_;
  const std::string event_;
  AuditRate lines_;
  Mutex mutex_;
  std::map<std::string, Host> hosts_ CHAINFLEET_GUARDED_BY(mutex_);
};

// Returns a function that counts, logs and audits a request for a page of metrics without its token. Both pointers
// outlive the function. Thread-safe.
OnRefusedPage AuditRefusedPages(AuditLog* audit, const Clock* clock);

}  // namespace chainfleet
