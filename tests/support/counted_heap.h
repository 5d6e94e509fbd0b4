// How much memory a test's process holds, to the byte: for tests that nothing stays behind per request.
#pragma once

#include <cstdint>

namespace chainfleet::testing {

// Bytes from operator new, of all threads and libraries, that are not deleted: with counted_heap.cc linked in, which
// replaces both in the whole program. What comes from malloc itself, tensors among it, is not counted.
int64_t HeldBytes();

}  // namespace chainfleet::testing
