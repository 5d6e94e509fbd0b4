#include "core/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace chainfleet {

absl::Duration SystemClock::Monotonic() const {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

absl::Time SystemClock::Wall() const { return absl::Now(); }

}  // namespace chainfleet
