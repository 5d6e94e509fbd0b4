#include "worker/numerics/minibatch.h"

#include <bit>

#include "core/base/check.h"

namespace chainfleet {
namespace {

// A 32-bit finaliser with full avalanche, so that a round costs nanoseconds rather than a Philox block.
uint32_t Mix(uint64_t value, uint32_t key) {
  uint32_t x = static_cast<uint32_t>(value) ^ static_cast<uint32_t>(value >> 32) * 0x9E3779B9u ^ key;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

}  // namespace

KeyedPermutation::KeyedPermutation(RngKey key, int64_t size) : size_(static_cast<uint64_t>(size)) {
  CHAINFLEET_CHECK(size >= 1 && size <= int64_t{1} << 62);
  const int bits = std::bit_width(size_ - 1);
  left_bits_ = bits / 2;
  right_bits_ = bits - left_bits_;
  for (int round = 0; round < kRounds; round += 4) {
    const PhiloxBlock block = RandomBlock(key, RngStream::kBatch, 0, static_cast<uint32_t>(round / 4));
    for (int i = 0; i < 4; ++i) round_keys_[round + i] = block.word[i];
  }
}

int64_t KeyedPermutation::operator()(int64_t position) const {
  uint64_t value = static_cast<uint64_t>(position);
  do {
    // Halves of unequal width swap places each round; an even number of rounds restores them.
    int left_bits = left_bits_, right_bits = right_bits_;
    uint64_t left = value >> right_bits, right = value & ((uint64_t{1} << right_bits) - 1);
    for (const uint32_t key : round_keys_) {
      const uint64_t mixed = (left ^ Mix(right, key)) & ((uint64_t{1} << left_bits) - 1);
      left = right;
      right = mixed;
      std::swap(left_bits, right_bits);
    }
    value = left << right_bits | right;
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

MinibatchPlan::MinibatchPlan(Minibatches kind, int64_t num_examples, int64_t batch_size)
    : kind_(kind), num_examples_(num_examples), batch_size_(batch_size) {
  CHAINFLEET_CHECK(batch_size >= 0 && batch_size <= num_examples);
}

void MinibatchPlan::Fill(RngKey chain_key, int64_t t, int64_t* ids, RngStream stream) const {
  if (batch_size_ == 0) return;
  if (kind_ == Minibatches::kReshuffle) {
    const int64_t batches = num_examples_ / batch_size_;
    const KeyedPermutation permutation(Fold(chain_key, static_cast<uint64_t>(t / batches)), num_examples_);
    const int64_t first = t % batches * batch_size_;
    for (int64_t i = 0; i < batch_size_; ++i) ids[i] = permutation(first + i);
    return;
  }
  for (int64_t i = 0; i < batch_size_; ++i) {
    const PhiloxBlock block = RandomBlock(chain_key, stream, static_cast<uint64_t>(t), static_cast<uint32_t>(i / 2));
    const uint64_t word = uint64_t{block.word[i % 2 * 2]} << 32 | block.word[i % 2 * 2 + 1];
    ids[i] = static_cast<int64_t>(static_cast<unsigned __int128>(word) * static_cast<uint64_t>(num_examples_) >> 64);
  }
}

void MinibatchPlan::FillDisjoint(RngKey chain_key, int64_t t, RngStream stream, int64_t count, int64_t* ids) const {
  const RngKey of_stream = Fold(chain_key, static_cast<uint64_t>(stream));
  const KeyedPermutation permutation(Fold(of_stream, static_cast<uint64_t>(t)), num_examples_);
  for (int64_t i = 0; i < count; ++i) ids[i] = permutation(i);
}

}  // namespace chainfleet
