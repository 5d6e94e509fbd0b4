// Calls the functions of the fake GPU, which it finds by name in the loaded module.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/fake_cuda/fake_gpu.h"

namespace chainfleet::fake_cuda {

// The `at`-th allocation from now on fails; 0: none does.
inline void Fail(int64_t at, Fault fault = Fault::kOutOfMemory) {
  static const auto fail = reinterpret_cast<decltype(&FailAllocation)>(dlsym(RTLD_DEFAULT, "FailAllocation"));
  ASSERT_NE(fail, nullptr);
  fail(at, fault);
}

// Returns the counts so far. REQUIRES: the module is loaded.
inline Counts GpuCounts() {
  static const auto counts = reinterpret_cast<decltype(&FakeGpuCounts)>(dlsym(RTLD_DEFAULT, "FakeGpuCounts"));
  return *counts();
}

}  // namespace chainfleet::fake_cuda
