// The fused Langevin update on a GPU: one thread per Philox block of a tensor, 4 parameters 16 apart, so that a half
// warp reads and writes 16 neighbours at a time.
#include <cuda_runtime.h>

#include "worker/numerics/kernels/cuda_abi.h"
#include "worker/numerics/kernels/normals.cuh"
#include "worker/numerics/kernels/update.h"

namespace chainfleet {
namespace {

constexpr int kRowsPerLaunch = 64;  // their scalars travel as a kernel argument: no copy, no lifetime

struct Rows {
  RowStep step[kRowsPerLaunch];
};

template <bool kAnchored>
__device__ void UpdateBlock(const UpdateBuffers& buffers, const TensorSpan& span, const RowStep& step, int64_t row,
                            uint32_t q, uint32_t lane, RowOutcome* seen) {
  float z[4], z_a[4];
  Normals(step.key, step.t, RngStream::kThetaNoise, kBlocksPerGroup * q + lane, z);
  if (kAnchored) Normals(step.key, step.t, RngStream::kThetaANoise, kBlocksPerGroup * q + lane, z_a);
  for (int output = 0; output < 4; ++output) {
    const int64_t i = int64_t{kGroup} * q + kBlocksPerGroup * output + lane - span.first;
    if (i < 0 || i >= span.size) continue;
    const int64_t at = row * buffers.row_stride + span.padded + i;
    const float theta = buffers.theta[at];
    float drift = fmaf(step.prior_precision, theta, buffers.gradient[at]);
    if (kAnchored) {
      const float theta_a = buffers.theta_a[at], gap = theta - theta_a, force = step.coupling * gap;
      drift += force;
      const float force_a = fmaf(-step.anchor_precision, theta_a, force);
      const float fresh_a = theta_a + fmaf(step.step_size, force_a, step.noise * z_a[output]);
      buffers.theta_a[at] = fresh_a;
      seen->theta_check += fresh_a * 0.0f;
      seen->anchor_distance2 = fmaf(gap, gap, seen->anchor_distance2);
    }
    const float fresh = theta + fmaf(-step.step_size, drift, step.noise * z[output]);
    buffers.theta[at] = fresh;
    seen->theta_check += fresh * 0.0f;
  }
}

// grid: (blocks of threads over the groups of one span, spans, rows).
template <bool kAnchored>
__global__ void Update(UpdateBuffers buffers, const TensorSpan* spans, Rows rows, int64_t first_row,
                       RowOutcome* outcomes) {
  const RowStep& step = rows.step[blockIdx.z];
  if (!step.active) return;
  const TensorSpan span = spans[blockIdx.y];
  const GroupRange groups = GroupsOf(span);
  const int64_t row = first_row + blockIdx.z;
  RowOutcome seen;
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < groups.count * kBlocksPerGroup; i += stride) {
    UpdateBlock<kAnchored>(buffers, span, step, row, static_cast<uint32_t>(groups.first + i / kBlocksPerGroup),
                           static_cast<uint32_t>(i % kBlocksPerGroup), &seen);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    seen.theta_check += __shfl_down_sync(0xFFFFFFFFu, seen.theta_check, offset);
    seen.anchor_distance2 += __shfl_down_sync(0xFFFFFFFFu, seen.anchor_distance2, offset);
  }
  if (threadIdx.x % 32 != 0) return;
  if (seen.theta_check != 0) outcomes[row].theta_check = seen.theta_check;  // only ever NaN
  if (kAnchored) atomicAdd(&outcomes[row].anchor_distance2, seen.anchor_distance2);
}

}  // namespace

extern "C" const uint64_t chainfleet_cuda_abi;
const uint64_t chainfleet_cuda_abi = kCudaAbi;

extern "C" int chainfleet_cuda_langevin_update(const UpdateBuffers* buffers, const TensorSpan* device_spans,
                                               const RowStep* steps, RowOutcome* outcomes, void* stream) {
  int64_t largest = 0;
  for (int64_t k = 0; k < buffers->num_spans; ++k) {
    if (buffers->spans[k].size > largest) largest = buffers->spans[k].size;
  }
  const unsigned blocks = BlocksFor(largest);
  for (int64_t first = 0; first < buffers->rows; first += kRowsPerLaunch) {
    const int64_t count = buffers->rows - first < kRowsPerLaunch ? buffers->rows - first : kRowsPerLaunch;
    Rows rows;
    for (int64_t r = 0; r < count; ++r) rows.step[r] = steps[first + r];
    const dim3 grid(blocks, static_cast<unsigned>(buffers->num_spans), static_cast<unsigned>(count));
    const auto kernel = buffers->theta_a != nullptr ? Update<true> : Update<false>;
    kernel<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(*buffers, device_spans, rows, first, outcomes);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace chainfleet
