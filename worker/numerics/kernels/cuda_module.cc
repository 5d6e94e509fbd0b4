#include "worker/numerics/kernels/cuda_module.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "core/base/check.h"

namespace chainfleet {
namespace {

// Set once, before any thread that steps.
std::atomic<LangevinUpdateCudaFunction> langevin_update = nullptr;

}  // namespace

absl::Status LoadCudaModule() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const char kName[] = "libchainfleet_cuda.so";
  std::string tried;
  for (const fs::path& path : {folder / kName, folder / ".." / "lib" / kName}) {
    if (!fs::exists(path, error)) {
      tried += (tried.empty() ? "" : ", ") + path.lexically_normal().string();
      continue;
    }
    // Global: LibTorch's CUDA back end registers itself with the LibTorch that is already here.
    void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module == nullptr) {
      return WithReason(
          absl::FailedPreconditionError("cannot load the CUDA module " + path.string() + ": " + dlerror() +
                                        "; install the full torch wheel and its nvidia packages"),
          "NO_DEVICE");
    }
    langevin_update = reinterpret_cast<LangevinUpdateCudaFunction>(dlsym(module, kLangevinUpdateCudaSymbol));
    if (langevin_update != nullptr) return absl::OkStatus();
    return WithReason(absl::FailedPreconditionError(path.string() + " is of another build: it lacks " +
                                                    kLangevinUpdateCudaSymbol + "; rebuild it"),
                      "NO_DEVICE");
  }
  return WithReason(
      absl::FailedPreconditionError("the CUDA module libchainfleet_cuda.so is not there (looked at " + tried +
                                    "): build it on a host with the CUDA toolkit, or use "
                                    "--device cpu"),
      "NO_DEVICE");
}

void LangevinUpdateCuda(const UpdateBuffers& buffers, const RowStep* steps, RowOutcome* outcomes, int device) {
  static_assert(sizeof(RowOutcome) == 2 * sizeof(float));
  const LangevinUpdateCudaFunction update = langevin_update;
  CHAINFLEET_CHECK(update != nullptr) << "a CUDA batch without the CUDA module";
  const at::Device cuda(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  const at::Tensor spans = at::from_blob(const_cast<TensorSpan*>(buffers.spans),
                                         {static_cast<int64_t>(sizeof(TensorSpan)) * buffers.num_spans}, at::kByte)
                               .to(cuda);
  const at::Tensor seen = at::zeros({buffers.rows, 2}, at::TensorOptions().dtype(at::kFloat).device(cuda));
  const c10::DeviceGuard on_device(cuda);
  const c10::impl::VirtualGuardImpl guard(at::kCUDA);
  void* const stream = guard.getStreamNativeHandle(guard.getStream(cuda));
  const int error = update(&buffers, static_cast<const TensorSpan*>(spans.const_data_ptr()), steps,
                           static_cast<RowOutcome*>(seen.mutable_data_ptr()), stream);
  TORCH_CHECK(error == 0, "fused update on cuda:", device, " failed with CUDA error ", error);
  const at::Tensor home = seen.cpu();
  std::copy_n(static_cast<const RowOutcome*>(home.const_data_ptr()), buffers.rows, outcomes);
}

}  // namespace chainfleet
