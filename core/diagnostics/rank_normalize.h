// Ranks turned into normal scores (Vehtari, Gelman, Simpson, Carpenter and Buerkner, Bayesian Analysis 16 (2021),
// eq. 14): diagnostics of these exist whatever moments the quantity has.
#pragma once

#include <span>
#include <vector>

namespace chainfleet {

// z with P(x <= z) = `probability` for x ~ N(0, 1), to a relative 1e-15; infinite at 0 and 1.
double NormalQuantile(double probability);

// Element by element NormalQuantile((r - 3/8) / (n + 1/4)), r the rank from 1 among all n values, the average of ranks
// for ties. No value is NaN.
std::vector<double> RankNormalize(std::span<const double> values);

}  // namespace chainfleet
