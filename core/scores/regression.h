// Scores of predicted distributions of numbers against targets: one definition each (docs/explanation/sampling.md,
// "Scores").
#pragma once

#include <span>

namespace chainfleet {

// log(exp(a) + exp(b)) without overflow; -infinity is the logarithm of 0.
double LogAddExp(double a, double b);

// P(x <= value) for x ~ N(mean, variance).
double NormalDistribution(double value, double mean, double variance);

// Root of the mean of (prediction - target)^2, 0 for no rows, NaN if one is NaN.
double RootMeanSquareError(std::span<const double> prediction, std::span<const float> target);

// Share of rows whose distribution function at the target lies within the central `mass`, 0..1; 0 for no rows, NaN if
// one is NaN.
double CentralCoverage(std::span<const double> distribution, double mass);

}  // namespace chainfleet
