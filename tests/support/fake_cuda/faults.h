// Faults that a test may order from the fake GPU (back_end.cc).
#pragma once

#include <cstdint>

namespace chainfleet::fake_cuda {

// After kLost everything else fails, too, as on a GPU whose context is broken.
enum class Fault { kOutOfMemory, kLost };

}  // namespace chainfleet::fake_cuda

// The `at`-th allocation from now on fails; 0: none does. Found in the module by its name.
extern "C" void FailAllocation(int64_t at, chainfleet::fake_cuda::Fault kind);
