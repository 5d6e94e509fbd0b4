// Quantiles of mixtures of Gaussians: what the draws of a regression say together.
#pragma once

#include <span>

namespace chainfleet {

// Where P(X <= x) passes `level`, to 1e-10 of max(|x|, the widest component's standard deviation), for the
// mixture of N(mean[i], variance[i]) with shares in proportion to weight[i]: all of one length of at least 1. `level`
// is inside (0, 1); near both ends it is as exact as in the middle, for the upper half is the lower half mirrored. A
// variance of 0 is a point mass. NaN if a parameter is not finite, a variance or weight is negative, or all weights are
// 0.
double MixtureQuantile(std::span<const double> weight, std::span<const double> mean, std::span<const double> variance,
                       double level);

}  // namespace chainfleet
