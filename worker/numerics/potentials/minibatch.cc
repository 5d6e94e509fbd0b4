#include "worker/numerics/potentials/minibatch.h"

#include "core/base/check.h"

namespace chainfleet {

MinibatchPlan::MinibatchPlan(Minibatches kind, int64_t num_examples, int64_t batch_size)
    : draw_{num_examples, batch_size, kind == Minibatches::kReshuffle} {
  CHAINFLEET_CHECK(batch_size >= 0 && batch_size <= num_examples && num_examples <= int64_t{1} << 62);
}

void MinibatchPlan::Fill(RngKey chain_key, int64_t t, int64_t* ids, RngStream stream) const {
  if (batch_size() == 0) return;
  const StepKey at = {chain_key, static_cast<uint64_t>(t)};
  if (draw_.reshuffles) {
    const KeyedPermutation permutation = draw_.PermutationAt(at);
    const int64_t first = draw_.FirstPosition(at);
    for (int64_t i = 0; i < batch_size(); ++i) ids[i] = permutation(first + i);
    return;
  }
  for (int64_t i = 0; i < batch_size(); ++i) ids[i] = draw_.WithReplacement(at, stream, i);
}

void MinibatchPlan::FillDisjoint(RngKey chain_key, int64_t t, RngStream stream, int64_t count, int64_t* ids) const {
  const RngKey of_stream = Fold(chain_key, static_cast<uint64_t>(stream));
  const KeyedPermutation permutation(Fold(of_stream, static_cast<uint64_t>(t)), draw_.num_examples);
  for (int64_t i = 0; i < count; ++i) ids[i] = permutation(i);
}

}  // namespace chainfleet
