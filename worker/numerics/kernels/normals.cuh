// The normals of core/base/rng_key.h on a GPU. Device code.
#pragma once

#include "core/base/rng_key.h"

namespace chainfleet {

constexpr int kGroup = 64, kBlocksPerGroup = 16;

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
