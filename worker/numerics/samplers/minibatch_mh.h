// Metropolis-Hastings on minibatches (Kawasaki & Holzmann, "Data subsampling for Bayesian neural networks"). The energy
// difference is the mean delta over M disjoint minibatches, the same at theta and theta', drawn anew each step. Its
// variance chi2 is estimated from them (batch_differences.h). Four rules, at temperature T:
//
//   kPenalty       min(1, exp(-delta / T - u_B(chi2 / T^2))), exact on average (noisy_acceptance.h)
//   kPlainPenalty  as kPenalty with chi2 / (2 T^2): accepts too much, because chi2 is an estimate
//   kNone          min(1, exp(-delta / T)): biased, for comparison
//   kBarker        1 / (1 + exp(Delta / T)), with delta's noise extended to the logistic distribution
//
// At nM = N the variance is 0 and each rule equals its full-data rule. Langevin proposals use the gradient of one
// minibatch, which depends only on the chain's key and step and is the same in both directions: detailed balance holds
// for each such minibatch.
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
  int64_t num_batches = 20;  // M; at least 2, except for kNone
  double data_size = 0;      // number of examples that the likelihood counts as; 0: N

  void InitRow(SamplerState* state, int64_t row) const;
  std::vector<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
