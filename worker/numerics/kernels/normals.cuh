// What the elementwise kernels on a GPU share: groups of 64 parameters as threads see them, and their normals. Device
// code; the numbers are those of core/base/rng_key.h.
#pragma once

#include "core/base/rng_key.h"
#include "worker/numerics/tensor_span.h"

namespace chainfleet {

constexpr int kGroup = 64, kBlocksPerGroup = 16, kThreads = 256;

struct GroupRange {
  int64_t first, count;  // of groups
};

__device__ inline GroupRange GroupsOf(const TensorSpan& span) {
  const int64_t first = span.first / kGroup;
  return {first, span.size == 0 ? 0 : (span.first + span.size - 1) / kGroup - first + 1};
}

// Blocks of threads for the largest span of a launch, at most 1024.
inline unsigned BlocksFor(int64_t largest_span) {
  const int64_t wanted = ((largest_span / kGroup + 2) * kBlocksPerGroup + kThreads - 1) / kThreads;
  return static_cast<unsigned>(wanted < 1024 ? wanted : 1024);
}

__device__ inline void Normals(RngKey key, uint64_t t, RngStream stream, uint32_t block, float* z) {
  const PhiloxBlock words = RandomBlock(key, stream, t, block);
  for (int pair = 0; pair < 4; pair += 2) {
    const float radius = sqrtf(-2.0f * logf(UniformFloat(words.word[pair])));
    float sine, cosine;
    sincospif(2.0f * UniformFloat(words.word[pair + 1]), &sine, &cosine);
    z[pair] = radius * cosine;
    z[pair + 1] = radius * sine;
  }
}

}  // namespace chainfleet
