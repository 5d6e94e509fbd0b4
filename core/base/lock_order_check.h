// Abseil's check of the order in which threads lock mutexes.
#pragma once

#include "absl/synchronization/mutex.h"

namespace chainfleet {

// Debian builds Abseil with the check. It takes one global lock for each lock and unlock of the process, also in gRPC.
// Programs call this at the start of main; tests keep the check.
inline void DisableLockOrderCheck() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

}  // namespace chainfleet
