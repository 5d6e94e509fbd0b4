#include "core/diagnostics/mcse.h"

#include <math.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/diagnostics/ess.h"

namespace chainfleet {
namespace {

// Returns log Gamma without the global sign that std::lgamma writes.
double LogGamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

// Evaluates the continued fraction of I_x(a, b) (DLMF 8.17.22) by Lentz's method; converges in O(sqrt(max(a, b))) terms
// for x < (a + 1) / (a + b + 2).
double BetaFraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300, kDone = 1e-16;
  constexpr int kTerms = 100'000;
  const auto off_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double d = 1 / off_zero(1 - (a + b) * x / (a + 1)), c = 1, fraction = d;
  for (int m = 1; m < kTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / off_zero(1 + even * d);
    c = off_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / off_zero(1 + odd * d);
    c = off_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) <= kDone) break;
  }
  return fraction;
}

// Returns I_x(a, b).
double BetaDistribution(double x, double a, double b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - BetaDistribution(1 - x, b, a);
  const double log_weight =
      LogGamma(a + b) - LogGamma(a) - LogGamma(b) + a * std::log(x) + b * std::log1p(-x) - std::log(a);
  return std::exp(log_weight) * BetaFraction(x, a, b);
}

}  // namespace

double BetaQuantile(double probability, double a, double b) {
  double low = 0, high = 1;
  while (high - low > 1e-15) {
    const double middle = (low + high) / 2;
    (BetaDistribution(middle, a, b) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

double McseMean(Traces traces) {
  const double ess = EssMean(traces);
  return std::isnan(ess) ? ess : std::sqrt(Variance(traces.values) / ess);
}

double McseSd(Traces traces) {
  if (!Usable(traces)) return std::numeric_limits<double>::quiet_NaN();
  const double mean = Mean(traces.values);
  std::vector<double> squares(traces.values.begin(), traces.values.end());
  for (double& value : squares) value = (value - mean) * (value - mean);
  const double variance = Mean(squares);
  double fourth = 0;
  for (const double square : squares) fourth += square * square / static_cast<double>(squares.size());
  return std::sqrt((fourth - variance * variance) / EssMean({squares, traces.num_chains}) / variance / 4);
}

double McseQuantile(Traces traces, double probability) {
  constexpr double kBelow = 0.1586553, kAbove = 0.8413447;  // normal law at -1 and 1, rounded as in ArviZ
  const double ess = EssQuantile(traces, probability);
  if (std::isnan(ess)) return ess;
  std::vector<double> sorted(traces.values.begin(), traces.values.end());
  std::sort(sorted.begin(), sorted.end());
  const double n = static_cast<double>(sorted.size()), a = ess * probability + 1, b = ess * (1 - probability) + 1;
  const auto at = [&](double share) { return BetaQuantile(share, a, b) * n - 1; };
  const auto lower = static_cast<int64_t>(std::floor(std::max(at(kBelow), 0.0)));
  const auto upper = static_cast<int64_t>(std::ceil(std::min(at(kAbove), n - 1)));
  return (sorted[upper] - sorted[lower]) / 2;
}

}  // namespace chainfleet
