// Tests inject faults into the fake GPU (back_end.cc) and read its counters. They find the functions in the module by
// name.
#pragma once

#include <cstdint>

namespace chainfleet::fake_cuda {

// After kLost every other call fails too, as on a GPU whose context is broken.
enum class Fault { kOutOfMemory, kLost };

inline constexpr int64_t kMemoryBytes = int64_t{1} << 30;

// Calls since the start of the process. A real GPU launches at least one kernel for each operator.
struct Counts {
  int64_t operators = 0;  // LibTorch's, without views
  int64_t launches = 0;   // our own kernels
  int64_t allocations = 0;
  int64_t copies = 0;    // between the host and a device
  int64_t blocking = 0;  // waits of the host, for a copy, operator or event, that leave the device idle
  int64_t copied_bytes = 0;
  int64_t emptied = 0;  // calls that tell the allocator to release cached memory
  bool operator==(const Counts&) const = default;
};

}  // namespace chainfleet::fake_cuda

// The `at`-th allocation from now on fails; 0: none does.
extern "C" void FailAllocation(int64_t at, chainfleet::fake_cuda::Fault kind);
// Makes memory, operators, copies and launches of this device fail from now on; -1: of no device.
extern "C" void ForbidDevice(int device);
extern "C" chainfleet::fake_cuda::Counts* FakeGpuCounts();

// Each launch of our own kernels calls this before it runs, on the current device.
extern "C" void CountLaunch();
