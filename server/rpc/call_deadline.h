// How long a call may take.
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

}  // namespace chainfleet
