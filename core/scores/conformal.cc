#include "core/scores/conformal.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace chainfleet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kDenominator = kConformalLevels + 1;

}  // namespace

double ConformalScoreOf(double target, double mean, double variance) {
  return target == mean ? 0 : std::abs(target - mean) / std::sqrt(variance);
}

double ConformalHalfWidth(double threshold, double variance) {
  return std::isinf(threshold) ? threshold : threshold * std::sqrt(variance);
}

std::vector<double> ConformalThresholds(std::vector<double> scores) {
  std::ranges::replace_if(
      scores, [](double score) { return std::isnan(score); }, kInfinity);
  std::ranges::sort(scores);
  const auto rows = static_cast<int64_t>(scores.size());
  std::vector<double> thresholds;
  for (int64_t level = 1; level < kDenominator; ++level) {
    const int64_t rank = ((rows + 1) * level + kDenominator - 1) / kDenominator;  // rounds up
    thresholds.push_back(rank > rows ? kInfinity : scores[static_cast<size_t>(rank - 1)]);
  }
  return thresholds;
}

double ConformalThreshold(std::span<const double> thresholds, double level) {
  // 0.9 * 1000 may be a little above 900.
  const double at = std::ceil(level * static_cast<double>(kDenominator) - 1e-9);
  return thresholds[static_cast<size_t>(std::clamp<double>(at, 1, kConformalLevels)) - 1];
}

}  // namespace chainfleet
