// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// A key is a value; there is no global generator. The counter is (block, stream, step low, step high), so every number
// is a pure function of (key, stream, step, position): vector width, C, the row and threads have no influence.
// Parameter p in layout order (no padding): q = p div 64, r = p mod 64, block = 16 q + (r mod 16), output r div 16.
// Words (0,1) and (2,3) of a block make Box-Muller pairs. Compiles for host and device (CHAINFLEET_HD).
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define CHAINFLEET_HD __host__ __device__
#else
#define CHAINFLEET_HD
#endif

namespace chainfleet {

// The purpose of a number. The values are part of the format of resume points: append, never renumber.
enum class RngStream : uint32_t {
  kThetaNoise = 0,
  kThetaANoise = 1,
  kMomentum = 2,
  kProposal = 3,
  kAccept = 4,
  kBatch = 5,
  kAugmentation = 6,
  kInit = 7,
  kDropout = 8,
  kProbe = 9,
  kTruth = 10,
};

struct PhiloxBlock {
  uint32_t word[4];
};

struct RngKey {
  uint64_t value = 0;
  bool operator==(const RngKey& other) const { return value == other.value; }
};

// Applies ten rounds to `counter` with `key`.
CHAINFLEET_HD inline PhiloxBlock Philox(RngKey key, PhiloxBlock counter) {
  uint32_t k0 = static_cast<uint32_t>(key.value), k1 = static_cast<uint32_t>(key.value >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * counter.word[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * counter.word[2];
    counter = {{static_cast<uint32_t>(p1 >> 32) ^ counter.word[1] ^ k0, static_cast<uint32_t>(p1),
                static_cast<uint32_t>(p0 >> 32) ^ counter.word[3] ^ k1, static_cast<uint32_t>(p0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// Returns the block at (block, stream, step).
CHAINFLEET_HD inline PhiloxBlock RandomBlock(RngKey key, RngStream stream, uint64_t step, uint32_t block) {
  return Philox(
      key, {{block, static_cast<uint32_t>(stream), static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)}});
}

// Makes a new key from `key` and `label`; the chain key is Fold(RngKey{job seed}, chain index). Uses a counter word
// pattern that no stream can produce (stream = 0xFFFFFFFF).
CHAINFLEET_HD inline RngKey Fold(RngKey key, uint64_t label) {
  const PhiloxBlock b =
      Philox(key, {{static_cast<uint32_t>(label), 0xFFFFFFFFu, static_cast<uint32_t>(label >> 32), 0}});
  return {(static_cast<uint64_t>(b.word[1]) << 32) | b.word[0]};
}

// Returns a number in (0, 1], never 0: (the 24 high bits + 1) / 2^24.
CHAINFLEET_HD inline float UniformFloat(uint32_t word) { return static_cast<float>((word >> 8) + 1) * 0x1p-24f; }

// Returns a number in (0, 1) from 52 bits of two words, centred because a 53rd bit would round up to 1. For accept
// decisions and other single draws.
CHAINFLEET_HD inline double UniformDouble(uint32_t high, uint32_t low) {
  const uint64_t bits = (static_cast<uint64_t>(high) << 32 | low) >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

// Returns one standard normal number by Box-Muller on block `index`, for numbers that all tensors of a draw share.
inline double NormalDouble(RngKey key, RngStream stream, uint64_t step, uint32_t index) {
  const PhiloxBlock b = RandomBlock(key, stream, step, index);
  return std::sqrt(-2 * std::log(UniformDouble(b.word[0], b.word[1]))) *
         std::cos(6.283185307179586 * UniformDouble(b.word[2], b.word[3]));
}

}  // namespace chainfleet
