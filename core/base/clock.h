// Time as a parameter: nothing below floor 6 asks the system for it, so tests and the simulator step it by hand.
#pragma once

#include "absl/time/time.h"

namespace chainfleet {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Time since an arbitrary origin; never goes backwards. For leases, deadlines, backoff.
  virtual absl::Duration Monotonic() const = 0;

  // Calendar time; may jump. For display and retention only.
  virtual absl::Time Wall() const = 0;
};

// CLOCK_MONOTONIC and CLOCK_REALTIME. Only mains and end-to-end tests make one.
class SystemClock final : public Clock {
 public:
  absl::Duration Monotonic() const override;
  absl::Time Wall() const override;
};

}  // namespace chainfleet
