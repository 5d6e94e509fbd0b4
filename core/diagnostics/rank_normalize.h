// Turns ranks into normal scores (Vehtari, Gelman, Simpson, Carpenter and Buerkner, Bayesian Analysis 16 (2021), eq.
// 14). Diagnostics of normal scores exist even if the quantity has no moments.
#pragma once

#include <span>
#include <vector>

namespace chainfleet {

// Returns z with P(x <= z) = `probability` for x ~ N(0, 1), to a relative 1e-15; infinite at 0 and 1.
double NormalQuantile(double probability);

// Returns NormalQuantile((r - 3/8) / (n + 1/4)) for each element. r is the rank from 1 among all n values; ties get the
// average of their ranks. All are NaN if a value is NaN, which has no rank.
std::vector<double> RankNormalize(std::span<const double> values);

}  // namespace chainfleet
