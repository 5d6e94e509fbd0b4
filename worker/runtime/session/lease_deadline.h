// The time until which a worker may step a chain under one lease.
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "core/base/limits.h"

namespace chainfleet {

// Counted from before the request that granted or renewed the lease was sent, and shortened by a margin. The worker
// therefore stops before the coordinator may assume so, however long the reply took. The margin is
// limits::kLeaseMargin, or a third of very short terms.
class LeaseDeadline {
 public:
  // Expired from the start.
  LeaseDeadline() = default;

  // `sent_at` is Clock::Monotonic() before the request, `ttl` the reply's lease_ttl.
  LeaseDeadline(absl::Duration sent_at, absl::Duration ttl)
      : ends_at_(sent_at + ttl - std::min(limits::kLeaseMargin, ttl / 3)) {}

  bool IsGood(absl::Duration now) const { return now < ends_at_; }

  // Takes the later of both: a delayed reply never shortens a lease.
  void Extend(const LeaseDeadline& other) { ends_at_ = std::max(ends_at_, other.ends_at_); }

 private:
  absl::Duration ends_at_ = -absl::InfiniteDuration();
};

}  // namespace chainfleet
