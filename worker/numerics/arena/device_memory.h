// Memory of a GPU, as counted by the device and by LibTorch's allocator. On a CPU all numbers are 0 and nothing is
// released.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "worker/numerics/arena/device.h"

namespace chainfleet {

// Bytes that no process uses now.
absl::StatusOr<int64_t> FreeDeviceBytes(Device device);

// Returns the memory that LibTorch's allocator caches to the GPUs of this process.
void ReleaseCachedMemory();

// Measures the peak memory of a piece of work beyond the memory in use at its end. Throws as LibTorch does.
class WorkMemory {
 public:
  explicit WorkMemory(Device device);
  int64_t Read() const;  // bytes

 private:
  const Device device_;
};

}  // namespace chainfleet
