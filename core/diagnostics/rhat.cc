#include "core/diagnostics/rhat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/diagnostics/rank_normalize.h"

namespace chainfleet {
namespace {

double ScaleReduction(Traces chains) {
  std::vector<double> means;
  double within = 0;
  for (int64_t chain = 0; chain < chains.num_chains; ++chain) {
    means.push_back(Mean(chains.Chain(chain)));
    within += Variance(chains.Chain(chain)) / static_cast<double>(chains.num_chains);
  }
  const double n = static_cast<double>(chains.num_draws());
  return std::sqrt((n * Variance(means) / within + n - 1) / n);
}

}  // namespace

double Rhat(Traces traces) {
  if (traces.num_chains < 2 || !Usable(traces)) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> split = SplitChains(traces);
  const double bulk = ScaleReduction({RankNormalize(split), 2 * traces.num_chains});
  const double median = Quantile(split, 0.5);
  // Half of the values or more are infinite: nothing has a distance from the median. `bulk` alone would call chains
  // that agree on infinity converged.
  if (!std::isfinite(median)) return std::numeric_limits<double>::quiet_NaN();
  for (double& value : split) value = std::abs(value - median);
  const double tail = ScaleReduction({RankNormalize(split), 2 * traces.num_chains});
  return std::max(bulk, tail);  // returns `bulk` if `tail` is NaN, for example for two values with equal distances
}

double NestedRhat(Traces traces, std::span<const int64_t> superchains) {
  std::map<int64_t, std::vector<int64_t>> members;
  for (size_t c = 0; c < superchains.size(); ++c) members[superchains[c]].push_back(static_cast<int64_t>(c));
  if (members.size() < 2 || traces.num_draws() < 1) return std::numeric_limits<double>::quiet_NaN();
  size_t size = superchains.size();
  for (const auto& [label, chains] : members) size = std::min(size, chains.size());
  std::vector<double> means;
  double within = 0;
  for (const auto& [label, chains] : members) {
    std::vector<double> chain_means;
    for (size_t i = 0; i < size; ++i) {
      const std::span<const double> draws = traces.Chain(chains[i]);
      chain_means.push_back(Mean(draws));
      if (draws.size() > 1) within += Variance(draws) / static_cast<double>(size * members.size());
    }
    means.push_back(Mean(chain_means));
    if (size > 1) within += Variance(chain_means) / static_cast<double>(members.size());
  }
  return std::sqrt(1 + Variance(means) / within);
}

}  // namespace chainfleet
