// Tells whether a sampler finds parameters that were drawn from the prior: simulation-based calibration (Talts,
// Betancourt, Simpson, Vehtari & Gelman, arXiv 1804.06788). If it does, the rank of the true value among draws given
// data that it made is uniform over repetitions.
#pragma once

#include <cstdint>
#include <span>

namespace chainfleet {

inline constexpr int64_t kFewestShares = 20;  // fewer say too little for a test
// Mean ESS of a chain. With less, the draws that RankShare counts stay correlated, and p-values come out too small.
inline constexpr double kFewestRankedDraws = 20;

// Returns the rank of 0 among the values of one chain as a share in (0, 1):
//
//   u = (number of values below 0 + uniform * (number equal to 0 + 1)) / (L + 1),  L: number of values counted.
//
// `values` are differences from the truth. Counts the newest value and each k-th before it, k = ceil(2 n / ess) for n
// values: uniformity needs about independent draws. `uniform` in (0, 1) breaks ties, so u has the continuous uniform
// law for any L. REQUIRES: at least one value; no NaN.
double RankShare(std::span<const double> values, double ess, double uniform);

// Returns the p-value of the Anderson-Darling test that n `shares` are independent and uniform on (0, 1), 0 to 1. Small
// values of
//
//   A^2 = -n - (1 / n) sum_i (2 i - 1) log(u_(i) (1 - u_(n + 1 - i)))
//
// are likely, and the test weighs both ends more than the middle. The law of A^2: adinf and errfix of Marsaglia &
// Marsaglia, Evaluating the Anderson-Darling distribution, J. Statistical Software 9(2) (2004); beyond A^2 = 8, where
// their polynomial ends, its asymptote sqrt(3) erfc(sqrt(A^2)). REQUIRES: at least one share.
double AndersonDarlingUniform(std::span<const double> shares);

}  // namespace chainfleet
