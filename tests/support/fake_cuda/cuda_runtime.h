// The part of CUDA that the kernels use, on the host: a launch runs its grid thread by thread, in the calling thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "fake_gpu.h"

#define __host__
#define __device__
#define __global__
#define __launch_bounds__(...)

using cudaStream_t = void*;
enum cudaError_t : int { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
inline cudaError_t cudaGetLastError() { return cudaSuccess; }

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
// As the real float4, it may alias floats and is aligned to 16 bytes.
struct __attribute__((may_alias, aligned(16))) float4 {
  float x, y, z, w;
};

// Launches come from one thread, the device loop's.
inline dim3 threadIdx, blockIdx, gridDim;

inline void sincospif(float x, float* sine, float* cosine) {
  *sine = static_cast<float>(std::sin(M_PI * static_cast<double>(x)));
  *cosine = static_cast<float>(std::cos(M_PI * static_cast<double>(x)));
}

namespace chainfleet::fake_cuda {

constexpr unsigned kWarp = 32;

// The values that one lane of the running warp has passed to its shuffles, in order. Lanes run from the last to the
// first, so the value that a lane reads from a higher lane is already stored.
struct Shuffled {
  double value[64];
  size_t count = 0;
};
inline Shuffled shuffled[kWarp];

// Runs `kernel` to its end, as a launch of `grid` blocks of `threads` would. Each launch starts at another block,
// because a GPU promises no order of blocks.
template <typename Kernel, typename... Arguments>
void Launch(const dim3& grid, unsigned threads, cudaStream_t, Kernel kernel, const Arguments&... arguments) {
  static unsigned turn = 0;
  ++turn;
  CountLaunch();
  gridDim = grid;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
      for (unsigned block = 0; block < grid.x; ++block) {
        blockIdx.x = (block + turn) % grid.x;
        for (unsigned warp = 0; warp < threads; warp += kWarp) {
          for (Shuffled& of_lane : shuffled) of_lane.count = 0;
          for (unsigned lane = kWarp; lane-- > 0;) {
            threadIdx = dim3(warp + lane);
            kernel(arguments...);
          }
        }
      }
    }
  }
}

}  // namespace chainfleet::fake_cuda

template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned offset) {
  using chainfleet::fake_cuda::kWarp;
  auto& shuffled = chainfleet::fake_cuda::shuffled;
  const unsigned lane = threadIdx.x % kWarp;
  const size_t at = shuffled[lane].count++;
  shuffled[lane].value[at] = static_cast<double>(value);
  return lane + offset < kWarp ? static_cast<T>(shuffled[lane + offset].value[at]) : value;
}
