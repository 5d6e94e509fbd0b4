// Scores predicted distributions of numbers against targets, with one definition each (docs/explanation/sampling.md,
// "Scores").
#pragma once

#include <span>

namespace chainfleet {

// Returns log(exp(a) + exp(b)) without overflow; -infinity is the logarithm of 0.
double LogAddExp(double a, double b);

// Returns P(x <= value) for x ~ N(mean, variance).
double NormalDistribution(double value, double mean, double variance);

// Returns the root of the mean of (prediction - target)^2; 0 for no rows, NaN if a value is NaN.
double RootMeanSquareError(std::span<const double> prediction, std::span<const float> target);

// Returns the share of rows whose distribution function at the target lies within the central `mass`, 0..1; 0 for no
// rows, NaN if a value is NaN.
double CentralCoverage(std::span<const double> distribution, double mass);

}  // namespace chainfleet
