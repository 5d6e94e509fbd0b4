// Vbar, the variance of the minibatch gradient of U, with minibatches drawn as the chain draws them.
#pragma once

#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// Number of minibatches for the variance: 64 on a CPU. On a GPU as many as have 2^22 coordinates together, from 8 to
// 64: a mean over more coordinates needs fewer minibatches.
int64_t NumVarianceBatches(int64_t num_parameters, Device device);

// [C]: the unbiased variance, at row r of `theta`, of the full-scale gradient over NumVarianceBatches minibatches,
// averaged over coordinates. Minibatches are drawn as the job draws them (with replacement, or each the first of its
// own permutation) from inputs.chains[r].key, which must not be a key of the chain itself. 0 without data; not finite
// if a gradient is not.
std::vector<double> MeasureGradientVariance(const StepInputs& inputs, ThetaArena* theta);

}  // namespace chainfleet
