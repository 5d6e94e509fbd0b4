// A clock that stands still until a test moves it.
#pragma once

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace chainfleet {

// Thread-safe. Monotonic time starts at one hour, so that subtracting a term never goes below zero.
class FakeClock final : public Clock {
 public:
  absl::Duration Monotonic() const override {
    MutexLock lock(&mutex_);
    return monotonic_;
  }
  absl::Time Wall() const override {
    MutexLock lock(&mutex_);
    return wall_;
  }

  void Advance(absl::Duration by) {
    MutexLock lock(&mutex_);
    monotonic_ += by;
    wall_ += by;
  }

  // Moves calendar time but not monotonic time, as when an operator or NTP sets the clock.
  void JumpWall(absl::Duration by) {
    MutexLock lock(&mutex_);
    wall_ += by;
  }

 private:
  mutable Mutex mutex_;
  absl::Duration monotonic_ CHAINFLEET_GUARDED_BY(mutex_) = absl::Hours(1);
  absl::Time wall_ CHAINFLEET_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1'700'000'000);
};

}  // namespace chainfleet
