#include "core/diagnostics/rhat.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  for (double& value : split) value = std::abs(value - median);
  const double tail = ScaleReduction({RankNormalize(split), 2 * traces.num_chains});
  return std::max(bulk, tail);  // returns `bulk` if `tail` is NaN, for example for two values with equal distances
}

}  // namespace chainfleet
