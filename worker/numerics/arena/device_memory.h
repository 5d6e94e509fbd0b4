// Memory of a GPU, as the device and LibTorch's allocator count it. On a CPU all numbers are 0 and nothing is released.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "worker/numerics/arena/device.h"

namespace chainfleet {

// That no process uses now.
absl::StatusOr<int64_t> FreeDeviceBytes(Device device);

// Gives the memory that LibTorch's allocator keeps for later back to the GPUs of this process.
void ReleaseCachedMemory();

// Measures the memory that a piece of work takes beyond what is there when it ends. Throws as LibTorch does.
class WorkMemory {
 public:
  explicit WorkMemory(Device device);
  int64_t Read() const;  // bytes

 private:
  const Device device_;
};

}  // namespace chainfleet
