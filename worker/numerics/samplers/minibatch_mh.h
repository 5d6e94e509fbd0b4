// Metropolis-Hastings on mini-batches (Kawasaki & Holzmann, "Data subsampling for Bayesian neural networks"): the
// energy difference is the mean delta over M disjoint batches, the same at theta and theta', fresh each step, and its
// variance is estimated from them as chi2 (batch_differences.h). Four rules, at temperature T:
//
//   kPenalty       min(1, exp(-delta / T - u_B(chi2 / T^2))), exact on average (noisy_acceptance.h)
//   kPlainPenalty  the same with chi2 / (2 T^2): accepts too much, because chi2 is an estimate
//   kNone          min(1, exp(-delta / T)): biased, a comparator
//   kBarker        1 / (1 + exp(Delta / T)), delta's noise made up to the logistic law
//
// At nM = N the variance is 0 and each is its full-data rule. Langevin proposals take the gradient of one mini-batch, a
// function of the chain's key and step alone, the same in both directions: detailed balance holds for each such batch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

struct MinibatchMh {
  enum class Rule { kPenalty, kPlainPenalty, kNone, kBarker };

  static constexpr const char* kArenas[] = {"theta"};
  Rule rule = Rule::kPenalty;
  Proposal proposal = Proposal::kRandomWalk;
  int64_t num_batches = 20;  // M; at least 2 but for kNone
  double data_size = 0;      // the likelihood counts as so many examples; 0: N

  void InitRow(SamplerState* state, int64_t row) const;
  std::vector<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
