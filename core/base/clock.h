// Time as a parameter: no code below floor 6 reads the system clock, so tests and the simulator step time by hand.
#pragma once

#include "absl/time/time.h"

namespace chainfleet {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // The time since an arbitrary origin; never goes backwards. For leases, deadlines and backoff.
  virtual absl::Duration Monotonic() const = 0;

  // The calendar time; may jump. For display and retention only.
  virtual absl::Time Wall() const = 0;
};

// Reads CLOCK_MONOTONIC and CLOCK_REALTIME. Only mains and end-to-end tests create one.
class SystemClock final : public Clock {
 public:
  absl::Duration Monotonic() const override;
  absl::Time Wall() const override;
};

}  // namespace chainfleet
