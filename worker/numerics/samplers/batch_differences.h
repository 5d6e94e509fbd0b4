// Estimates the energy difference of a proposal on disjoint minibatches.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// Statistics of one row over M minibatches. d_j is the difference of U estimated on minibatch j, with the likelihood
// scaled up and without the prior.
struct BatchDifferences {
  double energy = 0;      // U at the row's state, on all M minibatches
  double difference = 0;  // mean of d_j, plus the difference of the prior
  // Estimate of the variance of that mean: sum (d_j - mean)^2 / (M (M - 1)) (1 - nM / N); 0 for M = 1.
  double variance = 0;
  // Skew and kurtosis of d_j, unbiased for normal d_j; 0 and 3 if M is too small to compute them.
  double skew = 0, kurtosis = 3;
};

// Evaluates the same M disjoint minibatches of n at `from` and `to`, drawn anew each step from kAccept.
// `likelihood_weight`: see full_data.h. [C]; meaningless for inactive rows.
std::vector<BatchDifferences> CompareOnBatches(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to,
                                               int64_t num_batches, double likelihood_weight);

}  // namespace chainfleet
