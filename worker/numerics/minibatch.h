// Which examples a chain sees at step t: a pure function of (chain key, t), so a resume needs only t.
#pragma once

#include <cstdint>

#include "core/base/rng_key.h"
#include "core/domain/job_spec.h"

namespace chainfleet {

// A keyed permutation of [0, size): a Feistel network over ceil(log2 size) bits with cycle walking (Black & Rogaway,
// "Ciphers with arbitrary finite domains", CT-RSA 2002). O(1) memory; nothing is shuffled.
class KeyedPermutation {
 public:
  // 1 <= size <= 2^62.
  KeyedPermutation(RngKey key, int64_t size);
  int64_t operator()(int64_t position) const;

 private:
  static constexpr int kRounds = 8;
  uint64_t size_;
  int left_bits_, right_bits_;
  uint32_t round_keys_[kRounds];
};

// The batches of one job. Immutable. Thread-safe.
class MinibatchPlan {
 public:
  // 0 <= batch_size <= num_examples; 0 for analytic potentials.
  MinibatchPlan(Minibatches kind, int64_t num_examples, int64_t batch_size);

  int64_t batch_size() const { return batch_size_; }

  // The n examples of update `t` (from 0) of the chain with `chain_key`. kReshuffle: with B = floor(N/n), epoch e =
  // t div B and b = t mod B, positions bn .. bn+n-1 of the permutation keyed by Fold(chain_key, e). kIndependent: with
  // replacement, from `stream`.
  void Fill(RngKey chain_key, int64_t t, int64_t* ids, RngStream stream = RngStream::kBatch) const;

  // `count` <= N examples, none twice: the first positions of the permutation keyed by Fold(Fold(chain_key, stream),
  // t). Cut into parts they are disjoint batches; those of two steps are independent.
  void FillDisjoint(RngKey chain_key, int64_t t, RngStream stream, int64_t count, int64_t* ids) const;

 private:
  Minibatches kind_;
  int64_t num_examples_, batch_size_;
};

}  // namespace chainfleet
