// How long a call may take, and whether it has taken as long.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace chainfleet {

// What is left until the client's deadline, at most `bound`.
inline absl::Duration TimeLeft(const grpc::CallbackServerContext& context, const Clock& clock, absl::Duration bound) {
  return std::clamp(absl::FromChrono(context.deadline()) - clock.Wall(), absl::ZeroDuration(), bound);
}

// The client's deadline of a call that has just begun, to tell a client that waited in vain from one that went away.
class ClientDeadline {
 public:
  ClientDeadline(const grpc::CallbackServerContext& context, const Clock& clock)
      : clock_(&clock), began_(clock.Monotonic()), given_(absl::FromChrono(context.deadline()) - clock.Wall()) {}

  // Also when the client's own clock says so a little earlier: a deadline on the wire is rounded up, by 1 % at most.
  bool HasPassed() const { return clock_->Monotonic() - began_ >= given_ - given_ / 100 - kSlack; }

 private:
  static constexpr absl::Duration kSlack = absl::Milliseconds(5);
  const Clock* clock_;
  absl::Duration began_, given_;
};

}  // namespace chainfleet
