// The energy difference of a proposal as disjoint mini-batches see it.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// The statistics of one row: M batches, d_j the difference of U that batch j estimates (likelihood scaled up, no
// prior).
struct BatchDifferences {
  double energy = 0;      // U where the row is, on all M batches
  double difference = 0;  // mean of d_j, and the prior's
  double variance =
      0;  // estimate of the variance of that mean: sum (d_j - mean)^2 / (M (M - 1)) (1 - nM / N); M = 1: 0
  // Skew and kurtosis of d_j, without the bias a small M has for normal ones; 0 and 3 if M is too small to tell.
  double skew = 0, kurtosis = 3;
};

// The same M batches of n at `from` and `to`, disjoint, fresh each step, from kAccept. `likelihood_weight`:
// full_data.h. [C]; for rows at rest of no meaning.
std::vector<BatchDifferences> CompareOnBatches(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to,
                                               int64_t num_batches, double likelihood_weight);

}  // namespace chainfleet
