// Quantiles of mixtures of Gaussians, and their errors, for the combined draws of a regression.
#pragma once

#include <span>

namespace chainfleet {

// Returns the x at which P(X <= x) passes `level`, to 1e-10 of max(|x|, the largest standard deviation), for the
// mixture of N(mean[i], variance[i]) with shares proportional to weight[i]. The spans have one length of at least 1,
// and 0 < level < 1. The result is as exact near both ends as in the middle, because the upper half mirrors the lower
// half. A variance of 0 is a point mass. NaN if a parameter is not finite, a variance or weight is negative, or all
// weights are 0.
double MixtureQuantile(std::span<const double> weight, std::span<const double> mean, std::span<const double> variance,
                       double level);

// Sums over the components of a mixture or of a part of the mixture. The sums of the parts add up.
struct MixtureSums {
  double tail = 0;     // sum of weight * P(X <= x); for the upper tail, of weight * P(X >= x)
  double density = 0;  // sum of weight * p(x)
};

// Returns the sums at `x` for the parameters of MixtureQuantile. Small tails are exact on either side. A point mass has
// no density. NaN if `x` or a parameter is NaN.
MixtureSums MixtureSumsAt(std::span<const double> weight, std::span<const double> mean,
                          std::span<const double> variance, double x, bool upper);

// Returns the standard error of the quantile q of a mixture whose components are draws, by the delta method:
//
//   error(q) = error(F(q)) / f(q),   F(q) = mean of P_s(X <= q) over draws s,   f = dF / dq
//
// `tail_error`: standard error of the mean F(q), or of 1 - F(q), over the draws, which may be correlated, with q held
// fixed. `density`: f(q) over all draws. (Serfling 1980, "Approximation Theorems of Mathematical Statistics", 2.3.3;
// for Markov chains Doss, Flegal, Jones & Neath 2014; the draws' own probabilities replace their indicators of X <= q.)
// Returns 0 if all draws agree at q, and NaN (unknown) if the mixture has no density at q: between distant peaks, at
// point masses.
double MixtureQuantileError(double tail_error, double density);

}  // namespace chainfleet
