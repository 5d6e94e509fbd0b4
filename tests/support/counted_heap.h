// Counts the memory of a test's process to the byte, for tests that no request leaves memory behind.
#pragma once

#include <cstdint>

namespace chainfleet::testing {

// Returns the bytes from operator new, of all threads and libraries, that are not deleted. Needs counted_heap.cc, which
// replaces new and delete in the whole program. Memory from malloc itself, such as tensors, is not counted.
int64_t HeldBytes();

}  // namespace chainfleet::testing
