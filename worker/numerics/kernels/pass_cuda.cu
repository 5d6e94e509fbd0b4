// The passes on a GPU: one thread per Philox block of a tensor, as update_cuda.cu.
#include <cuda_runtime.h>

#include "worker/numerics/kernels/normals.cuh"
#include "worker/numerics/kernels/pass_list.h"

namespace chainfleet {
namespace {

constexpr int kRowsPerLaunch = 32;  // their scalars travel as a kernel argument: no copy, no lifetime

struct Rows {
  PassRow row[kRowsPerLaunch];
};

template <typename Op>
__device__ void ApplyToBlock(const PassBuffers& buffers, const TensorSpan& span, const PassRow& row, int64_t r,
                             uint32_t q, uint32_t lane, PassOutcome* seen) {
  float z[4] = {};
  if (Op::kNoise) Normals(row.key, row.t, buffers.stream, kBlocksPerGroup * q + lane, z);
  for (int output = 0; output < 4; ++output) {
    const int64_t i = int64_t{kGroup} * q + kBlocksPerGroup * output + lane - span.first;
    if (i < 0 || i >= span.size) continue;
    const int64_t at = r * buffers.row_stride + span.padded + i;
    float x[Op::kArenas];
    for (int a = 0; a < Op::kArenas; ++a) x[a] = buffers.arena[a][at];
    seen->sum += Op::Apply(row.s, x, z[output]);
    for (int a = 0; a < Op::kArenas; ++a) {
      if ((Op::kWritten >> a & 1) == 0) continue;
      buffers.arena[a][at] = x[a];
      seen->check += x[a] * 0.0f;
    }
  }
}

// grid: (blocks of threads over the groups of one span, spans, rows).
template <typename Op>
__global__ void Apply(PassBuffers buffers, Rows rows, int64_t first_row, PassOutcome* outcomes) {
  const PassRow& row = rows.row[blockIdx.z];
  if (!row.active) return;
  const TensorSpan span = buffers.spans[blockIdx.y];
  const GroupRange groups = GroupsOf(span);
  const int64_t r = first_row + blockIdx.z;
  PassOutcome seen;
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < groups.count * kBlocksPerGroup; i += stride) {
    ApplyToBlock<Op>(buffers, span, row, r, static_cast<uint32_t>(groups.first + i / kBlocksPerGroup),
                     static_cast<uint32_t>(i % kBlocksPerGroup), &seen);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    seen.sum += __shfl_down_sync(0xFFFFFFFFu, seen.sum, offset);
    seen.check += __shfl_down_sync(0xFFFFFFFFu, seen.check, offset);
  }
  if (threadIdx.x % 32 != 0) return;
  if (seen.check != 0) outcomes[r].check = seen.check;  // only ever NaN
  atomicAdd(&outcomes[r].sum, seen.sum);
}

template <typename Op>
cudaError_t Launch(const PassBuffers& buffers, int64_t largest_span, const PassRow* rows, PassOutcome* outcomes,
                   cudaStream_t stream) {
  const unsigned blocks = BlocksFor(largest_span);
  for (int64_t first = 0; first < buffers.rows; first += kRowsPerLaunch) {
    const int64_t count = buffers.rows - first < kRowsPerLaunch ? buffers.rows - first : kRowsPerLaunch;
    Rows some;
    for (int64_t r = 0; r < count; ++r) some.row[r] = rows[first + r];
    const dim3 grid(blocks, static_cast<unsigned>(buffers.num_spans), static_cast<unsigned>(count));
    Apply<Op><<<grid, kThreads, 0, stream>>>(buffers, some, first, outcomes);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

extern "C" int chainfleet_cuda_run_pass(int pass, const PassBuffers* buffers, int64_t largest_span, const PassRow* rows,
                                        PassOutcome* outcomes, void* stream) {
  const auto where = static_cast<cudaStream_t>(stream);
  switch (static_cast<Pass>(pass)) {
#define CHAINFLEET_CASE(Name) \
  case Pass::k##Name:         \
    return Launch<pass::Name>(*buffers, largest_span, rows, outcomes, where);
    CHAINFLEET_PASSES(CHAINFLEET_CASE)
#undef CHAINFLEET_CASE
  }
  return cudaErrorInvalidValue;
}

}  // namespace chainfleet
