// Where a batch lives: the CPU, or one GPU of this host.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

struct Device {
  int cuda_index = -1;  // -1: the CPU
  bool is_cuda() const { return cuda_index >= 0; }
  bool operator==(const Device&) const = default;
};

// "cpu" or "cuda:N". INVALID_ARGUMENT for anything else.
absl::StatusOr<Device> ParseDevice(const std::string& text);

// OK, or FAILED_PRECONDITION / NO_DEVICE if this process cannot use the GPU.
absl::Status CheckDeviceIsThere(Device device);

}  // namespace chainfleet
