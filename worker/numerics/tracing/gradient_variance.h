// Vbar, the variance of the mini-batch gradient of U, as a chain's own batches have it.
#pragma once

#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// Batches that the variance is taken over: 64 on a CPU. On a GPU as many as have 2^22 coordinates in all, from 8 to 64:
// the more coordinates a mean is taken over, the fewer batches it needs.
int64_t NumVarianceBatches(int64_t num_parameters, Device device);

// [C]: at row r of `theta` the unbiased variance over so many batches of the full-scale gradient, mean over
// coordinates. Batches are made as the job makes them (with replacement, or each the first of a permutation of its own)
// from inputs.chains[r].key, which must be no key of the chain itself. 0 without data; not finite if a gradient is not.
std::vector<double> MeasureGradientVariance(const StepInputs& inputs, ThetaArena* theta);

}  // namespace chainfleet
