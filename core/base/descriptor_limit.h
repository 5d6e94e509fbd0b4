// The number of files and sockets that this process may have open.
#pragma once

namespace chainfleet {

// Raises the soft limit of descriptors to the hard one, at most 65,536. The usual soft limit of 1,024 is less than a
// fleet needs, and a process without descriptors fails in every call. Call once, at the start of main.
void RaiseDescriptorLimit();

}  // namespace chainfleet
