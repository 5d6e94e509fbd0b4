// Takes the rights of a process that runs the code of a stranger.
#pragma once

#include "core/base/status.h"

namespace chainfleet {

// Limits this process for good: no new privileges, no core dumps, no new descriptors, no more memory than the host
// gives a worker, and a filter of system calls that leaves arithmetic, memory, clocks and bytes on standard input. It
// ends with the thread that started it. INTERNAL: the kernel refuses the filter.
absl::Status Confine();

}  // namespace chainfleet
