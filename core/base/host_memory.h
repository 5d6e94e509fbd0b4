// The memory that this process may use before the kernel kills it.
#pragma once

#include <cstdint>
#include <string>

namespace chainfleet {

// Returns the least of the machine's memory and the limits of the process's control groups, in bytes. Batch jobs, pods
// and services set such limits (memory.max of version 2, memory.limit_in_bytes of version 1, up to the root group). An
// unreadable limit counts as no limit. `root` replaces / when /proc and /sys are read.
int64_t HostMemoryBytes(const std::string& root = "");

}  // namespace chainfleet
