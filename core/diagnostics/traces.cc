#include "core/diagnostics/traces.h"

#include <algorithm>
#include <cmath>

namespace chainfleet {

bool Usable(Traces traces) {
  return traces.num_draws() >= kFewestDraws &&
         std::none_of(traces.values.begin(), traces.values.end(), [](double x) { return std::isnan(x); });
}

std::vector<double> SplitChains(Traces traces) {
  const int64_t half = traces.num_draws() / 2;
  std::vector<double> split;
  split.reserve(2 * half * traces.num_chains);
  for (const int64_t begin : {int64_t{0}, traces.num_draws() - half}) {
    for (int64_t chain = 0; chain < traces.num_chains; ++chain) {
      const auto part = traces.Chain(chain).subspan(begin, half);
      split.insert(split.end(), part.begin(), part.end());
    }
  }
  return split;
}

double Mean(std::span<const double> values) {
  // Energies are large numbers with small differences. Summing differences from the first value keeps their digits.
  const double origin = values.front();
  double sum = 0;
  for (const double value : values) sum += value - origin;
  return origin + sum / static_cast<double>(values.size());
}

double Variance(std::span<const double> values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / (static_cast<double>(values.size()) - 1);
}

double Quantile(std::span<const double> values, double probability) {
  std::vector<double> sorted(values.begin(), values.end());
  const double n = static_cast<double>(sorted.size()), at = n * probability + (1 - probability);
  const double below = std::clamp(std::floor(at), 1.0, std::max(1.0, n - 1));
  const double share = std::clamp(at - below, 0.0, 1.0);
  const auto lower = sorted.begin() + static_cast<int64_t>(below) - 1;
  std::nth_element(sorted.begin(), lower, sorted.end());
  if (lower + 1 == sorted.end()) return *lower;
  return (1 - share) * *lower + share * *std::min_element(lower + 1, sorted.end());
}

}  // namespace chainfleet
