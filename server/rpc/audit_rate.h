// Bounds the lines that the failed calls of one caller get in the audit log. Otherwise a caller could repeat a refused
// call until the log deletes its oldest lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace chainfleet {

// Thread-safe. Knows as many callers as there are tokens.
class AuditRate {
 public:
  static constexpr double kAtOnce = 60, kPerSecond = 1;

  // nullopt: the call gets no line. Else the number of calls without one since the caller's last line.
  std::optional<int64_t> Take(const std::string& caller, absl::Duration now) {
    const MutexLock lock(&mutex_);
    Caller& known = callers_.try_emplace(caller, Caller{.at = now}).first->second;
    known.room = std::min(known.room + kPerSecond * absl::ToDoubleSeconds(now - known.at), kAtOnce);
    known.at = now;
    if (known.room < 1) {
      ++known.left_out;
      return std::nullopt;
    }
    known.room -= 1;
    return std::exchange(known.left_out, 0);
  }

 private:
  struct Caller {
    double room = kAtOnce;
    absl::Duration at;
    int64_t left_out = 0;
  };
  Mutex mutex_;
  std::map<std::string, Caller> callers_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
