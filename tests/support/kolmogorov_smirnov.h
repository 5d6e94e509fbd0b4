// The Kolmogorov-Smirnov test of weighted draws against a law.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

namespace chainfleet::testing {

struct WeightedValue {
  float value = 0;
  double weight = 1;
};

// Returns the largest distance between the weighted distribution function of `values` and `cdf`.
inline double KolmogorovDistance(std::vector<WeightedValue> values, const std::function<double(double)>& cdf) {
  std::sort(values.begin(), values.end(),
            [](const WeightedValue& a, const WeightedValue& b) { return a.value < b.value; });
  double all = 0, below = 0, largest = 0;
  for (const WeightedValue& value : values) all += value.weight;
  for (const WeightedValue& value : values) {
    const double law = cdf(value.value);
    largest = std::max({largest, std::abs(law - below / all), std::abs(law - (below + value.weight) / all)});
    below += value.weight;
  }
  return largest;
}

// Returns the distance that `independent` values exceed with probability 1e-4 (Smirnov's limit).
inline double CriticalDistance(double independent) { return std::sqrt(std::log(2e4) / 2 / independent); }

// Returns the distribution function of N(0, variance).
inline std::function<double(double)> NormalCdf(double variance) {
  return [scale = 1 / std::sqrt(2 * variance)](double x) { return std::erfc(-x * scale) / 2; };
}

}  // namespace chainfleet::testing
