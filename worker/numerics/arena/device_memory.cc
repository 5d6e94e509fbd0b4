#include "worker/numerics/arena/device_memory.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {
namespace {

c10::DeviceAllocator* CudaAllocator() { return c10::getDeviceAllocator(c10::DeviceType::CUDA); }
c10::DeviceIndex IndexOf(Device device) { return static_cast<c10::DeviceIndex>(device.cuda_index); }

}  // namespace

absl::StatusOr<int64_t> FreeDeviceBytes(Device device) {
  if (!device.is_cuda()) return 0;
  return CatchTorch("the look at a GPU's memory", [&]() -> absl::StatusOr<int64_t> {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    return static_cast<int64_t>(CudaAllocator()->getMemoryInfo(IndexOf(device)).first);
  });
}

void ReleaseCachedMemory() {
  if (c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) CudaAllocator()->emptyCache();
}

WorkMemory::WorkMemory(Device device) : device_(device) {
  if (device.is_cuda()) CudaAllocator()->resetPeakStats(IndexOf(device));
}

int64_t WorkMemory::Read() const {
  if (!device_.is_cuda()) return 0;
  const auto stats = CudaAllocator()->getDeviceStats(IndexOf(device_));
  const auto& bytes = stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  return bytes.peak - bytes.current;
}

}  // namespace chainfleet
