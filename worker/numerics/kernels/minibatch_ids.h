// The ids of the examples of a minibatch, for the CPU and for libchainfleet_cuda.so (C++17): the same ids on both.
#pragma once

#include <cstdint>

#include "core/base/rng_key.h"

namespace chainfleet {

// Identifies the random numbers of a chain's step.
struct StepKey {
  RngKey key;  // chain's key
  uint64_t step = 0;
};

// A keyed permutation of [0, size): a Feistel network over ceil(log2 size) bits with cycle walking (Black & Rogaway,
// "Ciphers with arbitrary finite domains", CT-RSA 2002). O(1) memory; nothing is shuffled.
class KeyedPermutation {
 public:
  // REQUIRES: 1 <= size <= 2^62.
  CHAINFLEET_HD KeyedPermutation(RngKey key, int64_t size) : size_(static_cast<uint64_t>(size)) {
    int bits = 0;
    while ((size_ - 1) >> bits != 0) ++bits;
    left_bits_ = bits / 2;
    right_bits_ = bits - left_bits_;
    for (int round = 0; round < kRounds; round += 4) {
      const PhiloxBlock block = RandomBlock(key, RngStream::kBatch, 0, static_cast<uint32_t>(round / 4));
      for (int i = 0; i < 4; ++i) round_keys_[round + i] = block.word[i];
    }
  }

  CHAINFLEET_HD int64_t operator()(int64_t position) const {
    auto value = static_cast<uint64_t>(position);
    do {
      // Halves of unequal width swap places each round; an even number of rounds restores them.
      int left_bits = left_bits_, right_bits = right_bits_;
      uint64_t left = value >> right_bits, right = value & ((uint64_t{1} << right_bits) - 1);
      for (int round = 0; round < kRounds; ++round) {
        const uint64_t mixed = (left ^ Mix(right, round_keys_[round])) & ((uint64_t{1} << left_bits) - 1);
        left = right;
        right = mixed;
        const int swapped = left_bits;
        left_bits = right_bits;
        right_bits = swapped;
      }
      value = left << right_bits | right;
    } while (value >= size_);
    return static_cast<int64_t>(value);
  }

 private:
  static constexpr int kRounds = 8;

  // A 32-bit finaliser with full avalanche: a round costs nanoseconds instead of a Philox block.
  CHAINFLEET_HD static uint32_t Mix(uint64_t value, uint32_t key) {
    uint32_t x = static_cast<uint32_t>(value) ^ static_cast<uint32_t>(value >> 32) * 0x9E3779B9u ^ key;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
  }

  uint64_t size_;
  int left_bits_, right_bits_;
  uint32_t round_keys_[kRounds];
};

// How the minibatches of a job are drawn. At step t of a chain, with B = floor(N/n), epoch e = t div B and b = t mod B:
// with reshuffling, positions bn .. bn+n-1 of the permutation keyed by Fold(chain key, e); else with replacement.
struct BatchDraw {
  int64_t num_examples = 0, batch_size = 0;  // N, n
  bool reshuffles = true;

  CHAINFLEET_HD KeyedPermutation PermutationAt(StepKey at) const {
    const uint64_t batches = static_cast<uint64_t>(num_examples / batch_size);
    return KeyedPermutation(Fold(at.key, at.step / batches), num_examples);
  }
  CHAINFLEET_HD int64_t FirstPosition(StepKey at) const {
    return static_cast<int64_t>(at.step % static_cast<uint64_t>(num_examples / batch_size)) * batch_size;
  }
  // Example `i` of a minibatch with replacement: floor(N u / 2^64) for a random word u.
  CHAINFLEET_HD int64_t WithReplacement(StepKey at, RngStream stream, int64_t i) const {
    const PhiloxBlock block = RandomBlock(at.key, stream, at.step, static_cast<uint32_t>(i / 2));
    const uint64_t word = uint64_t{block.word[i % 2 * 2]} << 32 | block.word[i % 2 * 2 + 1];
    const auto n = static_cast<uint64_t>(num_examples);
#if defined(__CUDA_ARCH__)
    return static_cast<int64_t>(__umul64hi(word, n));
#else
    return static_cast<int64_t>(static_cast<unsigned __int128>(word) * n >> 64);
#endif
  }
};

}  // namespace chainfleet
