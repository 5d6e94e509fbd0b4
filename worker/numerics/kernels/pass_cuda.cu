// The fused update and the passes on a GPU. A warp processes one tile of one row and adds up the results of its
// threads; a second kernel adds up the tiles of each row in order, so that sums are the same in every run.
//
// If a tile is aligned to 16 bytes both in the random numbers and in memory, a thread owns 4 adjacent Philox blocks and
// loads and stores 4 parameters at a time. Otherwise it owns one block and 4 parameters that are 16 apart.
#include <cuda_runtime.h>

#include "worker/numerics/kernels/cuda_abi.h"
#include "worker/numerics/kernels/normals.cuh"
#include "worker/numerics/kernels/pass_ops.h"

namespace chainfleet {
namespace pass {

// The update of update.h. x = {theta, gradient, theta_a}, s = {step_size, noise, prior_precision, coupling,
// anchor_precision}. Sum: |theta - theta_a|^2 before the update.
struct Emcmc {
  static constexpr int kArenas = 3, kWritten = 5, kNoises = 2;
  __device__ static float Apply(const float* s, float* x, float z, float z_a) {
    const float gap = x[0] - x[2], force = s[3] * gap;
    const float drift = fmaf(s[2], x[0], x[1]) + force;
    x[2] += fmaf(s[0], fmaf(-s[4], x[2], force), s[1] * z_a);
    x[0] += fmaf(-s[0], drift, s[1] * z);
    return gap * gap;
  }
};

// The update without theta_a.
struct Sgld {
  static constexpr int kArenas = 2, kWritten = 1, kNoises = 1;
  __device__ static float Apply(const float* s, float* x, float z) {
    x[0] += fmaf(-s[0], fmaf(s[2], x[0], x[1]), s[1] * z);
    return 0;
  }
};

}  // namespace pass

namespace {

constexpr int kWarp = 32, kThreads = 128, kWarps = kThreads / kWarp;
constexpr int kRowsPerLaunch = 64;  // their scalars are a kernel argument: no copy, no lifetime

struct Rows {
  PassRow row[kRowsPerLaunch];
};

template <int kWide>
__device__ void Load(const float* from, float* to) {
  if constexpr (kWide == 1) {
    to[0] = from[0];
  } else {
    const float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  }
}

template <int kWide>
__device__ void Store(const float* from, float* to) {
  if constexpr (kWide == 1) {
    to[0] = from[0];
  } else {
    *reinterpret_cast<float4*>(to) = {from[0], from[1], from[2], from[3]};
  }
}

// Applies the op to `kWide` Philox blocks from `lane` of group `group` of the tile, which begins at `at` in the arenas.
template <typename Op, int kWide>
__device__ void ApplyToBlocks(const PassBuffers& buffers, const PassRow& row, const TensorSpan& tile, int64_t at,
                              int group, int lane, double* sum, float* check) {
  float z[kWide][4] = {}, second[kWide][4] = {};
  const uint32_t block = kBlocksPerGroup * static_cast<uint32_t>(tile.first / kGroup + group) + lane;
#pragma unroll
  for (int k = 0; k < kWide; ++k) {
    if constexpr (Op::kNoises > 0) Normals(row.key, row.t, buffers.stream, block + k, z[k]);
    if constexpr (Op::kNoises > 1) Normals(row.key, row.t, RngStream::kThetaANoise, block + k, second[k]);
  }
#pragma unroll
  for (int output = 0; output < 4; ++output) {
    const int i = kGroup * group + kBlocksPerGroup * output + lane - static_cast<int>(tile.first % kGroup);
    if (i < 0 || i >= tile.size) continue;
    float x[Op::kArenas][kWide];
    for (int a = 0; a < Op::kArenas; ++a) Load<kWide>(buffers.arena[a] + at + i, x[a]);
    for (int k = 0; k < kWide; ++k) {
      if (i + k >= tile.size) continue;  // padding: stored as it was loaded
      float value[Op::kArenas];
      for (int a = 0; a < Op::kArenas; ++a) value[a] = x[a][k];
      if constexpr (Op::kNoises > 1) {
        *sum += Op::Apply(row.s, value, z[k][output], second[k][output]);
      } else {
        *sum += Op::Apply(row.s, value, z[k][output]);
      }
      for (int a = 0; a < Op::kArenas; ++a) {
        if ((Op::kWritten >> a & 1) == 0) continue;
        x[a][k] = value[a];
        *check += value[a] * 0.0f;
      }
    }
    for (int a = 0; a < Op::kArenas; ++a) {
      if (Op::kWritten >> a & 1) Store<kWide>(x[a], buffers.arena[a] + at + i);
    }
  }
}

template <typename Op, int kWide>
__device__ void ApplyToTile(const PassBuffers& buffers, const PassRow& row, const TensorSpan& tile, int64_t at,
                            PassOutcome* seen) {
  constexpr int kPerGroup = kBlocksPerGroup / kWide;
  const int groups = static_cast<int>((tile.first % kGroup + tile.size + kGroup - 1) / kGroup);
  float check = 0;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < groups * kPerGroup; i += kWarp) {
    ApplyToBlocks<Op, kWide>(buffers, row, tile, at, i / kPerGroup, i % kPerGroup * kWide, &seen->sum, &check);
  }
  seen->check = check;
}

// Sums over the warp; lane 0 has the result.
__device__ void AddLanes(PassOutcome* seen) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    seen->sum += __shfl_down_sync(0xFFFFFFFFu, seen->sum, offset);
    seen->check += __shfl_down_sync(0xFFFFFFFFu, seen->check, offset);
  }
}

// Blocks that a multiprocessor holds at a time. With more, a thread would have fewer registers than it needs.
template <typename Op>
constexpr int kResident = Op::kArenas == kMaxPassArenas || Op::kNoises > 1 ? 5 : 8;

// grid: (blocks of a warp for each tile, rows).
template <typename Op>
__launch_bounds__(kThreads, kResident<Op>) __global__ void Apply(PassBuffers buffers, CudaTiles tiles, Rows rows, int64_t first_row) {
  const int64_t k = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (k >= tiles.count) return;
  const PassRow& row = rows.row[blockIdx.y];
  const int64_t r = first_row + blockIdx.y;
  PassOutcome seen;
  if (row.active) {
    const TensorSpan tile = tiles.tile[k];
    const int64_t at = r * buffers.row_stride + tile.padded;
    if ((tile.first | tile.padded) % 4 == 0) {
      ApplyToTile<Op, 4>(buffers, row, tile, at, &seen);
    } else {
      ApplyToTile<Op, 1>(buffers, row, tile, at, &seen);
    }
  }
  AddLanes(&seen);
  if (threadIdx.x % kWarp == 0) tiles.seen[r * tiles.count + k] = seen;
}

__device__ void Tell(const PassOutcome& seen, PassOutcome* outcome) { *outcome = seen; }
__device__ void Tell(const PassOutcome& seen, RowOutcome* outcome) {
  *outcome = {static_cast<float>(seen.check), static_cast<float>(seen.sum)};
}

// grid: rows, a warp each.
template <typename Outcome>
__global__ void AddTiles(CudaTiles tiles, Outcome* outcomes) {
  const PassOutcome* const parts = tiles.seen + blockIdx.x * tiles.count;
  PassOutcome seen;
#pragma unroll 8
  for (int64_t k = threadIdx.x; k < tiles.count; k += kWarp) {
    seen.sum += parts[k].sum;
    seen.check += parts[k].check;
  }
  AddLanes(&seen);
  if (threadIdx.x == 0) Tell(seen, &outcomes[blockIdx.x]);
}

// `row_at(r)` is the PassRow of row r.
template <typename Op, typename Outcome, typename RowAt>
cudaError_t Launch(const PassBuffers& buffers, const CudaTiles& tiles, RowAt row_at, Outcome* outcomes, void* stream) {
  const auto where = static_cast<cudaStream_t>(stream);
  const auto blocks = static_cast<unsigned>((tiles.count + kWarps - 1) / kWarps);
  for (int64_t first = 0; first < buffers.rows; first += kRowsPerLaunch) {
    const int64_t count = buffers.rows - first < kRowsPerLaunch ? buffers.rows - first : kRowsPerLaunch;
    Rows some;
    for (int64_t r = 0; r < count; ++r) some.row[r] = row_at(first + r);
    const dim3 grid(blocks, static_cast<unsigned>(count));
    Apply<Op><<<grid, kThreads, 0, where>>>(buffers, tiles, some, first);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  AddTiles<Outcome><<<static_cast<unsigned>(buffers.rows), kWarp, 0, where>>>(tiles, outcomes);
  return cudaGetLastError();
}

}  // namespace

extern "C" const uint64_t chainfleet_cuda_abi;
const uint64_t chainfleet_cuda_abi = kCudaAbi;

extern "C" int chainfleet_cuda_langevin_update(const UpdateBuffers* buffers, const CudaTiles* tiles,
                                               const RowStep* steps, RowOutcome* outcomes, void* stream) {
  PassBuffers arenas;
  arenas.row_stride = buffers->row_stride;
  arenas.rows = buffers->rows;
  arenas.arena[0] = buffers->theta;
  arenas.arena[1] = const_cast<float*>(buffers->gradient);  // not an arena of kWritten
  arenas.arena[2] = buffers->theta_a;
  const auto row_at = [steps](int64_t r) {
    const RowStep& step = steps[r];
    return PassRow{step.key,
                   step.t,
                   {step.step_size, step.noise, step.prior_precision, step.coupling, step.anchor_precision},
                   step.active};
  };
  if (buffers->theta_a != nullptr) return Launch<pass::Emcmc>(arenas, *tiles, row_at, outcomes, stream);
  return Launch<pass::Sgld>(arenas, *tiles, row_at, outcomes, stream);
}

extern "C" int chainfleet_cuda_run_pass(int pass, const PassBuffers* buffers, const CudaTiles* tiles,
                                        const PassRow* rows, PassOutcome* outcomes, void* stream) {
  const auto row_at = [rows](int64_t r) { return rows[r]; };
  switch (static_cast<Pass>(pass)) {
#define CHAINFLEET_CASE(Name) \
  case Pass::k##Name:         \
    return Launch<pass::Name>(*buffers, *tiles, row_at, outcomes, stream);
    CHAINFLEET_PASSES(CHAINFLEET_CASE)
#undef CHAINFLEET_CASE
  }
  return cudaErrorInvalidValue;
}

}  // namespace chainfleet
