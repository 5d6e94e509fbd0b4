#include "worker/numerics/arena/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <charconv>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "worker/numerics/kernels/cuda_module.h"

namespace chainfleet {

absl::StatusOr<Device> ParseDevice(const std::string& text) {
  if (text == "cpu") return Device{};
  const std::string prefix = "cuda:";
  int index = -1;
  if (text.starts_with(prefix)) {
    const char* const end = text.data() + text.size();
    const auto [parsed_to, error] = std::from_chars(text.data() + prefix.size(), end, index);
    if (error != std::errc() || parsed_to != end || index > 127) index = -1;
  }
  if (index < 0) return absl::InvalidArgumentError("device \"" + text + "\" is unknown: give cpu or cuda:N");
  return Device{index};
}

bool IsGpuName(const std::string& text) {
  const std::string form = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() != form.size() || !(text.starts_with("GPU-") || text.starts_with("MIG-"))) return false;
  for (size_t i = 4; i < form.size(); ++i) {
    if (form[i] == '-' ? text[i] != '-' : !absl::ascii_isxdigit(static_cast<unsigned char>(text[i]))) return false;
  }
  return true;
}

absl::Status CheckDeviceIsThere(Device device) {
  if (!device.is_cuda()) return absl::OkStatus();
  const int count = c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)
                        ? c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->deviceCount()
                        : 0;
  if (device.cuda_index < count) return absl::OkStatus();
  return WithReason(absl::FailedPreconditionError("device cuda:" + std::to_string(device.cuda_index) +
                                                  " is not there: this host has " + std::to_string(count) +
                                                  " usable GPUs; give another device or --device cpu"),
                    "NO_DEVICE");
}

namespace {

// On an Intel processor without AVX-512, the bits of MKL's products depend on more than the matrices unless this mode is
// on. tests/worker/numerics/bits_under.sh holds the bits of each chain there.
void MakeProductsStrict() {
  const bool affected =
      __builtin_cpu_is("intel") && __builtin_cpu_supports("avx2") && !__builtin_cpu_supports("avx512bw");
  if (affected) setenv("MKL_CBWR", "AVX2,STRICT", /*overwrite=*/0);
}

}  // namespace

absl::Status InitializeDevice(const std::string& device, int num_threads) {
  CHAINFLEET_ASSIGN_OR_RETURN(const Device parsed, ParseDevice(device));
  if (parsed.is_cuda()) CHAINFLEET_RETURN_IF_ERROR(Annotate(LoadCudaModule(), "device " + device));
  MakeProductsStrict();
  at::set_num_threads(num_threads);
  CHAINFLEET_RETURN_IF_ERROR(CheckDeviceIsThere(parsed));
  // float32 means float32, and a run-time timing never chooses an algorithm.
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setDeterministicCuDNN(true);
  return absl::OkStatus();
}

}  // namespace chainfleet
