// The largest eigenvalue of the Hessian of U, from gradients alone.
#pragma once

#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// Data sets up to this size, or up to a batch, are taken whole; of others one mini-batch is.
inline constexpr int64_t kCurvatureExamples = 512;
inline constexpr int kMaxCurvatureSteps = 16;

// [C]: at row r of `theta`. Power iteration on central differences of the gradient, H v = (g(theta + e v) - g(theta - e
// v)) / (2 e), as Lanczos (1950) has it: the largest eigenvalue of the tridiagonal matrix of the iterates, so that a
// large negative curvature does not hide the positive one, until it changes by less than half a percent. Batch and
// start come from inputs.chains[r].key, which must be no key of the chain itself. Prior included. Not finite if a
// gradient is not.
std::vector<double> MeasureCurvature(const StepInputs& inputs, ThetaArena* theta);

// The largest eigenvalue of the symmetric matrix with this diagonal and, between its members, `beside`.
double LargestEigenvalue(const std::vector<double>& diagonal, const std::vector<double>& beside);

}  // namespace chainfleet
