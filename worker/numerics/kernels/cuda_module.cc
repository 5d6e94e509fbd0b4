#include "worker/numerics/kernels/cuda_module.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <list>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "worker/numerics/kernels/cuda_abi.h"
#include "worker/numerics/tensors/late_copy.h"

namespace chainfleet {
namespace {

// Set once, before any thread steps.
std::atomic<LangevinUpdateCudaFunction> langevin_update = nullptr;
std::atomic<RunPassCudaFunction> run_pass = nullptr;
std::atomic<FillIdsCudaFunction> fill_ids = nullptr;

// GPU memory for the calls of one layout: its tiles, and room for the outcomes of rows and then of their tiles. It is
// kept between calls, so that a step neither uploads nor allocates between two moves of its rows: if memory is short,
// no row has moved.
struct Workspace {
  at::Device device;
  std::vector<TensorSpan> spans;
  at::Tensor tiles, seen;

  CudaTiles Tiles(int64_t rows) const {
    auto* const outcomes = static_cast<PassOutcome*>(seen.mutable_data_ptr());
    return {static_cast<const TensorSpan*>(tiles.const_data_ptr()), tiles.size(0), outcomes + rows};
  }
};

// [tiles, 3] on the host.
at::Tensor CutIntoTiles(const std::vector<TensorSpan>& spans) {
  std::vector<int64_t> numbers;
  for (const TensorSpan& span : spans) {
    const int64_t end = span.first + span.size;
    for (int64_t first = span.first, next; first < end; first = next) {
      next = std::min(end, (first / kTileSize + 1) * kTileSize);
      numbers.insert(numbers.end(), {first, span.padded + first - span.first, next - first});
    }
  }
  return at::tensor(numbers, at::kLong).view({-1, 3});
}

// Only for the device loop's thread.
const Workspace& WorkspaceFor(const TensorSpan* spans, int64_t num_spans, int64_t rows, at::Device device) {
  constexpr size_t kKept = 8;
  constexpr int64_t kSeenBytes = sizeof(PassOutcome);
  static_assert(sizeof(RowOutcome) <= kSeenBytes && sizeof(TensorSpan) == 3 * sizeof(int64_t));
  static auto* const kept = new std::list<Workspace>;  // most recently used first; never destroyed, as CUDA may be gone
  const auto known = std::ranges::find_if(*kept, [&](const Workspace& w) {
    return w.device == device && std::equal(w.spans.begin(), w.spans.end(), spans, spans + num_spans);
  });
  if (known != kept->end()) {
    kept->splice(kept->begin(), *kept, known);
  } else {
    const std::vector<TensorSpan> of(spans, spans + num_spans);
    kept->push_front({device, of, CutIntoTiles(of).to(device), {}});
    if (kept->size() > kKept) kept->pop_back();
  }
  Workspace& workspace = kept->front();
  const int64_t bytes = rows * (1 + workspace.tiles.size(0)) * kSeenBytes;
  if (!workspace.seen.defined() || workspace.seen.numel() < bytes) {
    workspace.seen.reset();
    workspace.seen = at::empty({bytes}, at::TensorOptions().dtype(at::kByte).device(device));
  }
  return workspace;
}

// Throws the same exceptions as LibTorch's own kernels.
void CheckLaunch(const char* what, int device, int error) {
  if (error == 0) return;
  throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, error,
                              absl::StrCat(what, " on cuda:", device, " failed with CUDA error ", error));
}

void* StreamOf(at::Device cuda) {
  const c10::impl::VirtualGuardImpl guard(at::kCUDA);
  return guard.getStreamNativeHandle(guard.getStream(cuda));
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
    // Global, because LibTorch's CUDA back end registers itself with the LibTorch that is already loaded.
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
    fill_ids = reinterpret_cast<FillIdsCudaFunction>(dlsym(module, kFillIdsCudaSymbol));
    const auto* const abi = static_cast<const uint64_t*>(dlsym(module, kCudaAbiSymbol));
    const bool has_all = langevin_update != nullptr && run_pass != nullptr && fill_ids != nullptr;
    if (abi != nullptr && *abi == kCudaAbi && has_all) return absl::OkStatus();
    return WithReason(absl::FailedPreconditionError(
                          path.string() + " is of another build than this worker: install both from the same one"),
                      "NO_DEVICE");
  }
  return WithReason(
      absl::FailedPreconditionError("the CUDA module libchainfleet_cuda.so is not there (looked at " + tried +
                                    "): build it on a host with the CUDA toolkit, or use "
                                    "--device cpu"),
      "NO_DEVICE");
}

Late<RowOutcome> LangevinUpdateCuda(const UpdateBuffers& buffers, const RowStep* steps, int device) {
  static_assert(sizeof(RowOutcome) == 2 * sizeof(float));
  const LangevinUpdateCudaFunction update = langevin_update;
  CHAINFLEET_CHECK(update != nullptr) << "a CUDA batch without the CUDA module";
  const at::Device cuda(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  const Workspace& workspace = WorkspaceFor(buffers.spans, buffers.num_spans, buffers.rows, cuda);
  ReserveLateCopies(buffers.rows * static_cast<int64_t>(sizeof(PassOutcome)), cuda);
  const c10::DeviceGuard there(cuda);
  const CudaTiles tiles = workspace.Tiles(buffers.rows);
  const int error =
      update(&buffers, &tiles, steps, static_cast<RowOutcome*>(workspace.seen.mutable_data_ptr()), StreamOf(cuda));
  CheckLaunch("the fused update", device, error);
  return CopyLate<RowOutcome>(workspace.seen, buffers.rows);
}

Late<PassOutcome> RunPassCuda(Pass pass, const PassBuffers& buffers, const PassRow* rows, int device) {
  static_assert(sizeof(PassOutcome) == 2 * sizeof(double));
  const RunPassCudaFunction run = run_pass;
  CHAINFLEET_CHECK(run != nullptr) << "a CUDA batch without the CUDA module";
  const at::Device cuda(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  const Workspace& workspace = WorkspaceFor(buffers.spans, buffers.num_spans, buffers.rows, cuda);
  ReserveLateCopies(buffers.rows * static_cast<int64_t>(sizeof(PassOutcome)), cuda);
  const c10::DeviceGuard there(cuda);
  const CudaTiles tiles = workspace.Tiles(buffers.rows);
  const int error = run(static_cast<int>(pass), &buffers, &tiles, rows,
                        static_cast<PassOutcome*>(workspace.seen.mutable_data_ptr()), StreamOf(cuda));
  CheckLaunch("a sampler's pass", device, error);
  return CopyLate<PassOutcome>(workspace.seen, buffers.rows);
}

void FillIdsCuda(const BatchDraw& draw, const StepKey* keys, int64_t rows, int64_t* ids, int device) {
  const FillIdsCudaFunction fill = fill_ids;
  CHAINFLEET_CHECK(fill != nullptr) << "a CUDA batch without the CUDA module";
  const at::Device cuda(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  const c10::DeviceGuard there(cuda);
  CheckLaunch("the draw of a batch", device, fill(&draw, keys, rows, ids, StreamOf(cuda)));
}

}  // namespace chainfleet
