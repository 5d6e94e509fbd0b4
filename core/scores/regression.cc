#include "core/scores/regression.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chainfleet {

double LogAddExp(double a, double b) {
  const double larger = a > b ? a : b, smaller = a > b ? b : a;
  if (larger == -std::numeric_limits<double>::infinity()) return larger;
  return larger + std::log1p(std::exp(smaller - larger));
}

double NormalDistribution(double value, double mean, double variance) {
  return std::erfc((mean - value) / std::sqrt(2 * variance)) / 2;
}

double RootMeanSquareError(std::span<const double> prediction, std::span<const float> target) {
  if (target.empty()) return 0;
  double sum = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    const double gap = prediction[i] - target[i];
    sum += gap * gap;
  }
  return std::sqrt(sum / static_cast<double>(target.size()));
}

double CentralCoverage(std::span<const double> distribution, double mass) {
  if (distribution.empty()) return 0;
  if (std::ranges::any_of(distribution, [](double c) { return std::isnan(c); })) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double tail = (1 - mass) / 2;
  const auto inside = std::ranges::count_if(distribution, [tail](double c) { return c >= tail && c <= 1 - tail; });
  return static_cast<double>(inside) / static_cast<double>(distribution.size());
}

}  // namespace chainfleet
