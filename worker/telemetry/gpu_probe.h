// Gauges of the GPUs from NVIDIA's management library (NVML), which is loaded on demand: neither build nor host needs
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/metrics/metrics.h"

namespace chainfleet {

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// One device at one moment. Values that its driver does not report are absent.
struct GpuReading {
  int index = 0;
  std::optional<double> utilization;  // share of the last sample period in which a kernel ran, 0..1
  std::optional<double> memory_used_bytes, memory_size_bytes;
  std::optional<double> power_watts;
};

// The driver's number of the device that CUDA calls `index` while CUDA_VISIBLE_DEVICES is `visible` (empty: not set).
// nullopt if `visible` hides the device or does not name it by number. The driver counts in bus order; so does CUDA if
// CUDA_DEVICE_ORDER is PCI_BUS_ID or all GPUs are of one model.
std::optional<int> DriverIndex(int index, const std::string& visible);

// Not thread-safe.
class GpuProbe {
 public:
  // `library`: kNvmlLibrary or a path. `device`: the device to read, in the driver's order; nullopt: all of the host.
  // NOT_FOUND: the library cannot be loaded, lacks a function, or finds no driver; the message says which.
  static absl::StatusOr<std::unique_ptr<GpuProbe>> Open(const std::string& library, std::optional<int> device);
  ~GpuProbe();

  std::vector<GpuReading> Read();

 private:
  struct Library;
  explicit GpuProbe(std::unique_ptr<Library> library);
  const std::unique_ptr<Library> library_;
  std::vector<int> devices_;
};

// chainfleet_gpu_utilization_ratio, _memory_used_bytes, _memory_size_bytes and _power_watts by `gpu`.
std::vector<GaugeFamily> GpuGauges(const std::vector<GpuReading>& readings);

}  // namespace chainfleet
