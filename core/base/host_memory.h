// The memory that this process may use before the kernel kills it.
#pragma once

#include <cstdint>
#include <string>

namespace chainfleet {

// Bytes: the least of the machine's memory and the limits of the control groups that this process is in, which a batch
// job, a pod or a service has (memory.max of version 2, memory.limit_in_bytes of version 1, of each group up to the
// root). A limit that cannot be read is none. `root` stands for / when /proc and /sys are read.
int64_t HostMemoryBytes(const std::string& root = "");

}  // namespace chainfleet
