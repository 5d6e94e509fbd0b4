// The examples that a chain uses at step t: a pure function of (chain key, t), so a resume needs only t.
#pragma once

#include <cstdint>

#include "core/base/rng_key.h"
#include "core/domain/job_spec.h"
#include "worker/numerics/kernels/minibatch_ids.h"

namespace chainfleet {

// The minibatches of one job. Immutable. Thread-safe.
class MinibatchPlan {
 public:
  // 0 <= batch_size <= num_examples; 0 for analytic potentials.
  MinibatchPlan(Minibatches kind, int64_t num_examples, int64_t batch_size);

  int64_t batch_size() const { return draw_.batch_size; }
  const BatchDraw& draw() const { return draw_; }

  // Writes the n examples of update `t` (from 0) of the chain with `chain_key`, as defined by BatchDraw; kIndependent
  // draws them from `stream`.
  void Fill(RngKey chain_key, int64_t t, int64_t* ids, RngStream stream = RngStream::kBatch) const;

  // Writes `count` <= N distinct examples: the first positions of the permutation keyed by Fold(Fold(chain_key,
  // stream), t). Parts of them are disjoint minibatches; those of two steps are independent.
  void FillDisjoint(RngKey chain_key, int64_t t, RngStream stream, int64_t count, int64_t* ids) const;

 private:
  BatchDraw draw_;
};

}  // namespace chainfleet
