// The number of files and sockets that this process may have open.
#pragma once

namespace chainfleet {

// Raises the soft limit of descriptors to the hard limit, at most 65,536. The usual soft limit of 1,024 is too low for
// a fleet, and every call fails in a process without free descriptors. Call once, at the start of main.
void RaiseDescriptorLimit();

}  // namespace chainfleet
