#include "core/scores/histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace chainfleet {
namespace {

constexpr double kAdded = 0.5;  // rows added to every bin

std::vector<double> Shares(std::span<const int64_t> counts) {
  const double total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0})) +
                       kAdded * static_cast<double>(counts.size());
  std::vector<double> shares;
  for (const int64_t count : counts) shares.push_back((static_cast<double>(count) + kAdded) / total);
  return shares;
}

}  // namespace

std::vector<int64_t> Histogram(std::span<const double> values, double top, int num_bins) {
  std::vector<int64_t> counts(static_cast<size_t>(num_bins));
  for (const double value : values) {
    if (std::isnan(value)) continue;
    const double bin = std::clamp(std::floor(value / top * num_bins), 0.0, static_cast<double>(num_bins - 1));
    ++counts[static_cast<size_t>(bin)];
  }
  return counts;
}

double SymmetrisedDivergence(std::span<const int64_t> first, std::span<const int64_t> second) {
  const std::vector<double> p = Shares(first), q = Shares(second);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += (p[i] - q[i]) * std::log(p[i] / q[i]);
  return sum;
}

}  // namespace chainfleet
