// Quantiles of mixtures of Gaussians, and their errors: what the draws of a regression say together.
#pragma once

#include <span>

namespace chainfleet {

// The x at which P(X <= x) passes `level`, to 1e-10 of max(|x|, the widest component's standard deviation), for the
// mixture of N(mean[i], variance[i]) with shares in proportion to weight[i]: all of one length of at least 1. `level`
// is inside (0, 1); near both ends it is as exact as in the middle, for the upper half is the lower half mirrored. A
// variance of 0 is a point mass. NaN if a parameter is not finite, a variance or weight is negative, or all weights are
// 0.
double MixtureQuantile(std::span<const double> weight, std::span<const double> mean, std::span<const double> variance,
                       double level);

// Over the components of a mixture, or of a part of one: such sums add up over its parts.
struct MixtureSums {
  double tail = 0;     // of weight * P(X <= x); of the upper tail, of weight * P(X >= x)
  double density = 0;  // of weight * p(x)
};

// At `x`, of the parameters of MixtureQuantile. Small tails are exact on either side. A point mass has no density. NaN
// if `x` or a parameter is.
MixtureSums MixtureSumsAt(std::span<const double> weight, std::span<const double> mean,
                          std::span<const double> variance, double x, bool upper);

// The standard error of a mixture's quantile q whose components are draws, by the delta method:
//
//   error(q) = error(F(q)) / f(q),   F(q) = mean of P_s(X <= q) over draws s,   f = dF / dq
//
// `tail_error`: standard error of the mean F(q), or of 1 - F(q), over the draws, which may resemble each other, with q
// held fixed. `density`: f(q), of all draws. (Serfling 1980, "Approximation Theorems of Mathematical
// Statistics", 2.3.3; for Markov chains Doss, Flegal, Jones & Neath 2014, whose indicators of X <= q are here the
// draws' own probabilities.) 0 if all draws agree at q; NaN, unknown, if the mixture has no density there: between far
// peaks, at point masses.
double MixtureQuantileError(double tail_error, double density);

}  // namespace chainfleet
