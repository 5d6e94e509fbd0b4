// Bounds the lines that callers get in the audit log. Otherwise a caller could repeat a call until the log deletes its
// oldest lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "server/rpc/auth.h"
#include "server/rpc/call_limits.h"

namespace chainfleet {

// A token has a rate of its own. The callers by JWT of a tenant share one, because an issuer may know any number of
// subjects, and some let their users choose them. One subject gets a tenth of that rate, so it leaves room for the
// others. Thread-safe.
class AuditRate {
 public:
  // `at_once` lines, and then one each `interval`.
  explicit AuditRate(int64_t at_once = limits::kAuditLinesAtOnce, absl::Duration interval = limits::kAuditLineInterval)
      : at_once_(at_once), interval_(interval) {}

  // nullopt: the call gets no line. Else the number of calls without one since the last line of the same rate.
  std::optional<int64_t> Take(const Principal& caller, absl::Duration now) {
    const bool has_jwt = caller.id.starts_with(kJwtPrincipal);
    const MutexLock lock(&mutex_);
    Rate& all = Find(has_jwt ? kJwtPrincipal + caller.tenant : caller.id, kMostRates, now, &rates_);
    Used* const one = has_jwt ? &Find(caller.id, kMostSubjects, now, &all.subjects) : nullptr;
    if (!HasRoom(all, 1, now) || (one != nullptr && !HasRoom(*one, kShares, now))) {
      ++all.left_out;
      return std::nullopt;
    }
    all.until = std::max(all.until, now) + interval_;
    if (one != nullptr) one->until = std::max(one->until, now) + kShares * interval_;
    return std::exchange(all.left_out, 0);
  }

 private:
  static constexpr int64_t kShares = 10;
  static constexpr size_t kMostRates = 4096, kMostSubjects = 256;
  struct Used {
    absl::Duration until = -absl::InfiniteDuration();  // when all lines may be taken again
    int64_t left_out = 0;
  };
  struct Rate : Used {
    std::map<std::string, Used> subjects;
  };

  bool HasRoom(const Used& used, int64_t shares, absl::Duration now) const {
    return std::max(used.until, now) - now + shares * interval_ <= at_once_ * interval_;
  }

  // Forgets those who may take all lines again when `known` is full. If it still is, new ones share the entry "".
  template <typename Entry>
  static Entry& Find(const std::string& key, size_t most, absl::Duration now, std::map<std::string, Entry>* known) {
    if (known->size() < most || known->contains(key)) return (*known)[key];
    int64_t left_out = 0;
    std::erase_if(*known, [&](const auto& entry) {
      if (entry.second.until > now) return false;
      left_out += entry.second.left_out;
      return true;
    });
    (*known)[""].left_out += left_out;
    return (*known)[known->size() < most ? key : ""];
  }

  const int64_t at_once_;
  const absl::Duration interval_;
  Mutex mutex_;
  std::map<std::string, Rate> rates_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
