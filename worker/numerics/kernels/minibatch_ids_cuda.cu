// Computes the ids of the minibatches of many chains on the GPU that uses them, one thread for each id.
#include <cuda_runtime.h>

#include "worker/numerics/kernels/cuda_abi.h"

namespace chainfleet {
namespace {

constexpr int kThreads = 128;

// grid: (blocks of threads over a batch, rows).
__global__ void FillIds(BatchDraw draw, const StepKey* keys, int64_t* ids) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= draw.batch_size) return;
  const StepKey at = keys[blockIdx.y];
  ids[blockIdx.y * draw.batch_size + i] = draw.reshuffles ? draw.PermutationAt(at)(draw.FirstPosition(at) + i)
                                                          : draw.WithReplacement(at, RngStream::kBatch, i);
}

}  // namespace

extern "C" int chainfleet_cuda_fill_ids(const BatchDraw* draw, const StepKey* keys, int64_t rows, int64_t* ids,
                                        void* stream) {
  constexpr int64_t kRows = 65535;  // rows of a grid
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t count = rows - first < kRows ? rows - first : kRows;
    const dim3 grid(static_cast<unsigned>((draw->batch_size + kThreads - 1) / kThreads), static_cast<unsigned>(count));
    FillIds<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(*draw, keys + first,
                                                                      ids + first * draw->batch_size);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace chainfleet
