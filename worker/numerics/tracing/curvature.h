// The largest eigenvalue of the Hessian of U, computed from gradients.
#pragma once

#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// Data sets up to this size, or up to a minibatch, are used whole; of larger ones one minibatch is used.
inline constexpr int64_t kCurvatureExamples = 512;
inline constexpr int kMaxCurvatureSteps = 16;

// [C]: the eigenvalue at row r of `theta`. Lanczos iteration (1950) on central differences of the gradient, H v =
// (g(theta + e v) - g(theta - e v)) / (2 e): the largest eigenvalue of the tridiagonal matrix of the iterates, so that
// a large negative curvature does not hide the positive one. Stops when it changes by less than half a percent.
// Minibatch and start come from inputs.chains[r].key, which must not be a key of the chain itself. Includes the prior.
// Not finite if a gradient is not.
std::vector<double> MeasureCurvature(const StepInputs& inputs, ThetaArena* theta);

// The largest eigenvalue of the symmetric tridiagonal matrix with this diagonal and the off-diagonal `beside`.
double LargestEigenvalue(const std::vector<double>& diagonal, const std::vector<double>& beside);

}  // namespace chainfleet
