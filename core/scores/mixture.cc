#include "core/scores/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace chainfleet {
namespace {

constexpr double kDeviations = 39;  // P(Z < -39) is below the smallest double
constexpr double kTolerance = 1e-12;
constexpr int kMaxSteps = 400;  // halvings alone need about 60

// `sign` -1 is the mixture of -X.
struct Mixture {
  std::span<const double> weight, mean, variance;
  double sign = 1, total = 0;

  // Computes no tail as a difference from 1, so small tails are exact.
  MixtureSums SumsAt(double x) const {
    MixtureSums sums;
    for (size_t i = 0; i < weight.size(); ++i) {
      const double gap = x - sign * mean[i], deviation = std::sqrt(variance[i]);
      if (deviation == 0) {
        if (gap >= 0) sums.tail += weight[i];
        continue;
      }
      const double z = gap / deviation;
      sums.tail += weight[i] * std::erfc(-z / std::numbers::sqrt2) / 2;
      sums.density += weight[i] * std::exp(-z * z / 2) / (deviation * std::sqrt(2 * std::numbers::pi));
    }
    return sums;
  }
  // Returns P(X <= x) and its derivative.
  MixtureSums At(double x) const {
    const MixtureSums sums = SumsAt(x);
    return {sums.tail / total, sums.density / total};
  }
};

bool IsSound(const Mixture& mixture) {
  const auto finite = [](double value) { return std::isfinite(value); };
  const auto not_negative = [](double value) { return std::isfinite(value) && value >= 0; };
  return std::ranges::all_of(mixture.mean, finite) && std::ranges::all_of(mixture.variance, not_negative) &&
         std::ranges::all_of(mixture.weight, not_negative) && mixture.total > 0;
}

// Finds the root of log(P / level) for level <= 1/2 by Newton steps. Halves the bracket when a step leaves it or
// shortens it too little (Press et al., "Numerical Recipes", rtsafe).
double LowerQuantile(const Mixture& mixture, double level) {
  double low = std::numeric_limits<double>::infinity(), high = -low, widest = 0;
  for (size_t i = 0; i < mixture.mean.size(); ++i) {
    if (mixture.weight[i] == 0) continue;
    const double deviation = std::sqrt(mixture.variance[i]), mean = mixture.sign * mixture.mean[i];
    low = std::min(low, mean - kDeviations * deviation);
    high = std::max(high, mean + kDeviations * deviation);
    widest = std::max(widest, deviation);
  }
  double x = low + (high - low) / 2, step = high - low;
  for (int i = 0; i < kMaxSteps; ++i) {
    const MixtureSums value = mixture.At(x);
    (value.tail >= level ? high : low) = x;
    if (value.tail == level || high - low <= kTolerance * std::max(std::abs(x), widest)) break;
    const double newton = x - std::log(value.tail / level) * value.tail / value.density;
    const double last = step;
    const bool inside = newton > low && newton < high && std::abs(newton - x) < std::abs(last) / 2;
    const double next = inside ? newton : low + (high - low) / 2;
    step = next - x;
    x = next;
    if (inside && std::abs(step) <= kTolerance * std::max(std::abs(x), widest)) break;
    if (x == low || x == high) break;  // neighbouring doubles
  }
  return x;
}

}  // namespace

double MixtureQuantile(std::span<const double> weight, std::span<const double> mean, std::span<const double> variance,
                       double level) {
  Mixture mixture{weight, mean, variance};
  for (const double w : weight) mixture.total += w;
  if (!IsSound(mixture)) return std::numeric_limits<double>::quiet_NaN();
  if (level <= 0.5) return LowerQuantile(mixture, level);
  mixture.sign = -1;
  return -LowerQuantile(mixture, 1 - level);
}

MixtureSums MixtureSumsAt(std::span<const double> weight, std::span<const double> mean,
                          std::span<const double> variance, double x, bool upper) {
  Mixture mixture{weight, mean, variance};
  if (!upper) return mixture.SumsAt(x);
  mixture.sign = -1;
  return mixture.SumsAt(-x);
}

double MixtureQuantileError(double tail_error, double density) {
  if (tail_error == 0) return 0;
  const double error = tail_error / density;
  return std::isfinite(error) ? error : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace chainfleet
