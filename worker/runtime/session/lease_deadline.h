// Until when a worker may step a chain on the strength of one lease.
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "core/base/limits.h"

namespace chainfleet {

// Counted from before the request that granted or renewed the lease was sent, and ended a margin early: the worker
// stops before the coordinator may think so, however long the reply was on its way. The margin is limits::kLeaseMargin,
// a third of very short terms.
class LeaseDeadline {
 public:
  // Never good.
  LeaseDeadline() = default;

  // `sent_at` is Clock::Monotonic() before the request, `ttl` the reply's lease_ttl.
  LeaseDeadline(absl::Duration sent_at, absl::Duration ttl)
      : ends_at_(sent_at + ttl - std::min(limits::kLeaseMargin, ttl / 3)) {}

  bool IsGood(absl::Duration now) const { return now < ends_at_; }

  // The later of both: a reply that was overtaken never shortens a lease.
  void Extend(const LeaseDeadline& other) { ends_at_ = std::max(ends_at_, other.ends_at_); }

 private:
  absl::Duration ends_at_ = -absl::InfiniteDuration();
};

}  // namespace chainfleet
