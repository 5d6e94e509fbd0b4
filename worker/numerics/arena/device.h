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

// Whether `text` names one GPU, or one part of a GPU, of any host: GPU-<uuid> or MIG-<uuid>, as `nvidia-smi -L` writes
// them. CUDA shows a process that GPU alone, as cuda:0, if CUDA_VISIBLE_DEVICES has the name before the CUDA module is
// loaded.
bool IsGpuName(const std::string& text);

// OK, or FAILED_PRECONDITION / NO_DEVICE if this process cannot use the GPU.
absl::Status CheckDeviceIsThere(Device device);

// Loads libchainfleet_cuda.so (before the first torch call of the process) if `device` is "cuda:N" and checks that the
// GPU is there; sets torch's thread count. Once, at the start of main. FAILED_PRECONDITION / NO_DEVICE says what is
// missing.
absl::Status InitializeDevice(const std::string& device, int num_threads);

}  // namespace chainfleet
