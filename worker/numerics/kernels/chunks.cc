#include "worker/numerics/kernels/chunks.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace chainfleet {
namespace {

constexpr int64_t kChunk = 16384;  // parameters

}  // namespace

int64_t NumChunks(int64_t num_parameters) { return (num_parameters + kChunk - 1) / kChunk; }

void ForEachChunk(int64_t rows, int64_t num_parameters,
                  const std::function<void(int64_t row, int64_t chunk, int64_t begin, int64_t end)>& function) {
  const int64_t chunks = NumChunks(num_parameters);
  const int64_t grain = std::max<int64_t>(1, kChunk / std::max<int64_t>(64, num_parameters));
  at::parallel_for(0, rows * chunks, grain, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t begin = task % chunks * kChunk;
      function(task / chunks, task % chunks, begin, std::min(begin + kChunk, num_parameters));
    }
  });
}

}  // namespace chainfleet
