// Limits that this process sets itself.
#pragma once

#include "absl/time/time.h"

namespace chainfleet {

// Raises the soft limit of descriptors to the hard limit, at most 65,536. The usual soft limit of 1,024 is too low for
// a fleet, and every call fails in a process without free descriptors. Call once, at the start of main.
void RaiseDescriptorLimit();

// Forbids core dumps of this process and its children for good, because a dump holds tokens and data of all tenants.
// Call once, before main reads secrets.
void ForbidCoreDumps();

// Sets how long this thread and those that it starts run before threads that wake up may interrupt them: 0.1 to 100 ms.
// Threads with short slices interrupt those with long ones; shares of the processors do not change. Kernels before
// Linux 6.12 ignore it.
void SetTimeSlice(absl::Duration slice);

}  // namespace chainfleet
