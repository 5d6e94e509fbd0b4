// How many files and sockets this process may have open.
#pragma once

namespace chainfleet {

// Raises the soft limit of descriptors to the hard one, at most 65,536. The usual soft limit of 1,024 is less than a
// fleet needs, and a process without descriptors fails whatever it does next. Once, at the start of main.
void RaiseDescriptorLimit();

}  // namespace chainfleet
