// The device of a batch: the CPU, or one GPU of this host.
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

// True if `text` names one GPU, or one part of a GPU, of any host: GPU-<uuid> or MIG-<uuid>, as `nvidia-smi -L` prints
// them. If CUDA_VISIBLE_DEVICES has the name before the CUDA module is loaded, CUDA shows only that GPU to the process,
// as cuda:0.
bool IsGpuName(const std::string& text);

// FAILED_PRECONDITION / NO_DEVICE if this process cannot use the GPU.
absl::Status CheckDeviceIsThere(Device device);

// If `device` is "cuda:N", loads libchainfleet_cuda.so (before the first torch call of the process) and checks that the
// GPU exists. Sets torch's thread count. Called once, at the start of main. FAILED_PRECONDITION / NO_DEVICE says what
// is missing.
absl::Status InitializeDevice(const std::string& device, int num_threads);

}  // namespace chainfleet
