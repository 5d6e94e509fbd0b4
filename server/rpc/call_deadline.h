// The time that a call has left, whether the client's deadline has passed, and whether the client has left.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace chainfleet {

// Returns the time until the client's deadline, at most `bound`.
inline absl::Duration TimeLeft(const grpc::CallbackServerContext& context, const Clock& clock, absl::Duration bound) {
  return std::clamp(absl::FromChrono(context.deadline()) - clock.Wall(), absl::ZeroDuration(), bound);
}

// The client's deadline of a call that has just begun. It tells a client whose deadline passed from one that
// disconnected, and knows whether either happened before the call began, while it waited for its turn.
class ClientDeadline {
 public:
  ClientDeadline(const grpc::CallbackServerContext& context, const Clock& clock)
      : clock_(&clock),
        began_(clock.Monotonic()),
        given_(absl::FromChrono(context.deadline()) - clock.Wall()),
        began_cancelled_(context.IsCancelled()) {}

  // May be false for a cancel that gRPC reports late. OnCancel reports every cancel.
  bool began_cancelled() const { return began_cancelled_; }

  // True also if the client's own clock reaches the deadline a little earlier: gRPC rounds a deadline up by at most 1
  // %.
  bool HasPassed() const { return clock_->Monotonic() - began_ >= given_ - given_ / 100 - kSlack; }

 private:
  static constexpr absl::Duration kSlack = absl::Milliseconds(5);
  const Clock* clock_;
  absl::Duration began_, given_;
  bool began_cancelled_;
};

}  // namespace chainfleet
