#include "core/diagnostics/uniformity.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace chainfleet {
namespace {

constexpr double kAsymptotic = 8;  // A^2 from which the asymptote is used; the two differ by 1 % there

// Returns P(A^2 > z) of infinitely many shares.
double TailAtInfinity(double z) {
  if (z <= 0) return 1;
  if (z < 2) {
    const double series =
        2.00012 + (0.247105 - (0.0649821 - (0.0347962 - (0.011672 - 0.00168691 * z) * z) * z) * z) * z;
    return 1 - std::exp(-1.2337141 / z) / std::sqrt(z) * series;
  }
  if (z >= kAsymptotic) return std::sqrt(3) * std::erfc(std::sqrt(z));
  return -std::expm1(
      -std::exp(1.0776 - (2.30695 - (0.43424 - (0.082433 - (0.008056 - 0.0003146 * z) * z) * z) * z) * z));
}

// Returns what P(A^2 < z) of n shares has more than x, that of infinitely many. The first constant is published as
// -130.2137; with it the result at x = 1 is not 0, and no p-value could be below 0.0006 / n.
double ErrorOfShares(double n, double x) {
  if (x > 0.8) {
    return (-130.2131 + (745.2337 - (1705.091 - (1950.646 - (1116.360 - 255.7844 * x) * x) * x) * x) * x) / n;
  }
  const double c = 0.01265 + 0.1757 / n;
  if (x < c) {
    const double t = x / c;
    return std::sqrt(t) * (1 - t) * (49 * t - 102) * (0.0037 / (n * n) + 0.00078 / n + 0.00006) / n;
  }
  const double t = (x - c) / (0.8 - c);
  const double series = -0.00022633 + (6.54034 - (14.6538 - (14.458 - (8.259 - 1.91864 * t) * t) * t) * t) * t;
  return series * (0.04213 + 0.01365 / n) / n;
}

}  // namespace

double RankShare(std::span<const double> values, double ess, double uniform) {
  const auto n = static_cast<int64_t>(values.size());
  // Values one autocorrelation time n / ess apart still have a correlation near exp(-2): enough to make ranks uneven.
  const auto every = static_cast<int64_t>(std::clamp(std::ceil(2 * static_cast<double>(n) / ess), 1.0, 1.0 * n));
  double below = 0, equal = 0, counted = 0;
  for (int64_t i = n - 1; i >= 0; i -= every) {
    below += values[i] < 0;
    equal += values[i] == 0;
    ++counted;
  }
  return (below + uniform * (equal + 1)) / (counted + 1);
}

double AndersonDarlingUniform(std::span<const double> shares) {
  constexpr double kLeast = 0x1p-53;  // keeps logarithms finite
  std::vector<double> sorted(shares.begin(), shares.end());
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(sorted.size());
  double sum = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double low = std::max(sorted[i], kLeast), high = std::max(1 - sorted[sorted.size() - 1 - i], kLeast);
    sum += (2 * static_cast<double>(i) + 1) * (std::log(low) + std::log(high));
  }
  const double z = -n - sum / n, tail = TailAtInfinity(z);
  return z >= kAsymptotic ? tail : std::clamp(tail - ErrorOfShares(n, 1 - tail), 0.0, 1.0);
}

}  // namespace chainfleet
