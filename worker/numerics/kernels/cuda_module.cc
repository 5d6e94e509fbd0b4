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
std::atomic<RunPassCudaFunction> run_pass = nullptr;

// Bytes of the host on the GPU.
at::Tensor Upload(const void* bytes, int64_t size, at::Device device) {
  return at::from_blob(const_cast<void*>(bytes), {size}, at::kByte).to(device);
}

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
      return WithReason(absl::FailedPreconditionError(
                            "cannot load the CUDA module " + path.string() + ": " + dlerror() +
                            "; on a host with a GPU install the full torch wheel and its nvidia packages, on "
                            "others use --device cpu"),
                        "NO_DEVICE");
    }
    langevin_update = reinterpret_cast<LangevinUpdateCudaFunction>(dlsym(module, kLangevinUpdateCudaSymbol));
    run_pass = reinterpret_cast<RunPassCudaFunction>(dlsym(module, kRunPassCudaSymbol));
    if (langevin_update != nullptr && run_pass != nullptr) return absl::OkStatus();
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
  const at::Tensor spans = Upload(buffers.spans, static_cast<int64_t>(sizeof(TensorSpan)) * buffers.num_spans, cuda);
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

void RunPassCuda(Pass pass, const PassBuffers& buffers, const PassRow* rows, PassOutcome* outcomes, int device) {
  static_assert(sizeof(PassOutcome) == 2 * sizeof(double));
  const RunPassCudaFunction run = run_pass;
  CHAINFLEET_CHECK(run != nullptr) << "a CUDA batch without the CUDA module";
  const at::Device cuda(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  const at::Tensor spans = Upload(buffers.spans, static_cast<int64_t>(sizeof(TensorSpan)) * buffers.num_spans, cuda);
  const at::Tensor seen = at::zeros({buffers.rows, 2}, at::TensorOptions().dtype(at::kDouble).device(cuda));
  int64_t largest = 0;
  for (int64_t k = 0; k < buffers.num_spans; ++k) largest = std::max(largest, buffers.spans[k].size);
  PassBuffers on_device = buffers;
  on_device.spans = static_cast<const TensorSpan*>(spans.const_data_ptr());
  const c10::DeviceGuard there(cuda);
  const c10::impl::VirtualGuardImpl guard(at::kCUDA);
  void* const stream = guard.getStreamNativeHandle(guard.getStream(cuda));
  const int error = run(static_cast<int>(pass), &on_device, largest, rows,
                        static_cast<PassOutcome*>(seen.mutable_data_ptr()), stream);
  TORCH_CHECK(error == 0, "a sampler's pass on cuda:", device, " failed with CUDA error ", error);
  const at::Tensor home = seen.cpu();
  std::copy_n(static_cast<const PassOutcome*>(home.const_data_ptr()), buffers.rows, outcomes);
}

}  // namespace chainfleet
