#include "worker/telemetry/gpu_probe.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace chainfleet {
namespace {

// The part of nvml.h that is used here; its binary interface is stable.
using NvmlDevice = void*;
struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};
struct NvmlMemory {
  unsigned long long total, free, used;  // bytes
};
constexpr int kNvmlSuccess = 0;

}  // namespace

struct GpuProbe::Library {
  void* handle = nullptr;
  bool initialized = false;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, NvmlDevice*) = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;  // milliwatts

  ~Library() {
    if (initialized) shutdown();
    if (handle != nullptr) ::dlclose(handle);
  }

  template <typename Function>
  absl::Status Find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(::dlsym(handle, name));
    return *function != nullptr ? absl::OkStatus() : absl::NotFoundError(absl::StrCat("NVML has no ", name));
  }

  absl::Status Load(const std::string& path) {
    handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return absl::NotFoundError(absl::StrCat("NVML: ", ::dlerror()));
    CHAINFLEET_RETURN_IF_ERROR(Find("nvmlInit_v2", &init));
    CHAINFLEET_RETURN_IF_ERROR(Find("nvmlShutdown", &shutdown));
    CHAINFLEET_RETURN_IF_ERROR(Find("nvmlDeviceGetCount_v2", &count));
    CHAINFLEET_RETURN_IF_ERROR(Find("nvmlDeviceGetHandleByIndex_v2", &device));
    CHAINFLEET_RETURN_IF_ERROR(Find("nvmlDeviceGetUtilizationRates", &utilization));
    CHAINFLEET_RETURN_IF_ERROR(Find("nvmlDeviceGetMemoryInfo", &memory));
    CHAINFLEET_RETURN_IF_ERROR(Find("nvmlDeviceGetPowerUsage", &power));
    const int code = init();
    initialized = code == kNvmlSuccess;
    return initialized ? absl::OkStatus() : absl::NotFoundError(absl::StrCat("NVML finds no driver, its code ", code));
  }
};

GpuProbe::GpuProbe(std::unique_ptr<Library> library) : library_(std::move(library)) {}
GpuProbe::~GpuProbe() = default;

absl::StatusOr<std::unique_ptr<GpuProbe>> GpuProbe::Open(const std::string& library, std::optional<int> device) {
  auto loaded = std::make_unique<Library>();
  CHAINFLEET_RETURN_IF_ERROR(loaded->Load(library));
  unsigned count = 0;
  if (loaded->count(&count) != kNvmlSuccess) return absl::NotFoundError("NVML does not count its devices");
  std::unique_ptr<GpuProbe> probe(new GpuProbe(std::move(loaded)));
  for (int index = 0; index < static_cast<int>(count); ++index) {
    if (!device || *device == index) probe->devices_.push_back(index);
  }
  return probe;
}

std::vector<GpuReading> GpuProbe::Read() {
  std::vector<GpuReading> readings;
  for (const int index : devices_) {
    NvmlDevice device = nullptr;
    if (library_->device(static_cast<unsigned>(index), &device) != kNvmlSuccess) continue;  // the device was lost
    GpuReading& reading = readings.emplace_back();
    reading.index = index;
    NvmlUtilization busy{};
    if (library_->utilization(device, &busy) == kNvmlSuccess) reading.utilization = busy.gpu / 100.0;
    NvmlMemory memory{};
    if (library_->memory(device, &memory) == kNvmlSuccess) {
      reading.memory_used_bytes = static_cast<double>(memory.used);
      reading.memory_size_bytes = static_cast<double>(memory.total);
    }
    unsigned milliwatts = 0;
    if (library_->power(device, &milliwatts) == kNvmlSuccess) reading.power_watts = milliwatts / 1000.0;
  }
  return readings;
}

std::optional<int> DriverIndex(int index, const std::string& visible) {
  if (visible.empty()) return index;
  const std::vector<std::string> devices = absl::StrSplit(visible, ',');
  int number = 0;
  if (index >= static_cast<int>(devices.size()) || !absl::SimpleAtoi(devices[static_cast<size_t>(index)], &number)) {
    return std::nullopt;
  }
  return number;
}

std::vector<GaugeFamily> GpuGauges(const std::vector<GpuReading>& readings) {
  using Member = std::optional<double> GpuReading::*;
  struct Shown {
    const char *name, *help;
    Member member;
  };
  std::vector<GaugeFamily> families;
  for (const Shown& shown :
       {Shown{"chainfleet_gpu_utilization_ratio", "Share of time in which a kernel ran.", &GpuReading::utilization},
        Shown{"chainfleet_gpu_memory_used_bytes", "Memory in use on the GPU.", &GpuReading::memory_used_bytes},
        Shown{"chainfleet_gpu_memory_size_bytes", "Memory of the GPU.", &GpuReading::memory_size_bytes},
        Shown{"chainfleet_gpu_power_watts", "Power that the GPU draws.", &GpuReading::power_watts}}) {
    GaugeFamily& family = families.emplace_back(GaugeFamily{shown.name, shown.help, {}});
    for (const GpuReading& reading : readings) {
      if (const auto& value = reading.*shown.member) {
        family.samples.push_back({{{"gpu", absl::StrCat(reading.index)}}, *value});
      }
    }
  }
  return families;
}

}  // namespace chainfleet
