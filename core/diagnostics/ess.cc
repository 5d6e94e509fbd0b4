#include "core/diagnostics/ess.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/diagnostics/rank_normalize.h"

namespace chainfleet {
namespace {

// The mean of the chains' autocovariances, computed lag by lag on demand. Geyer's sequence ends after a few
// autocorrelation times, long before a transform of the whole chain would pay off.
class MeanAutocovariance {
 public:
  explicit MeanAutocovariance(Traces chains) : num_draws_(chains.num_draws()), num_chains_(chains.num_chains) {
    centred_.assign(num_chains_ * (num_draws_ + kLags), 0);
    for (int64_t chain = 0; chain < num_chains_; ++chain) {
      const std::span<const double> draws = chains.Chain(chain);
      means_.push_back(Mean(draws));
      std::transform(draws.begin(), draws.end(), centred_.begin() + chain * (num_draws_ + kLags),
                     [mean = means_.back()](double x) { return x - mean; });
    }
  }

  const std::vector<double>& means() const { return means_; }

  // Returns (1/S) sum_i (x_i - mean) (x_{i + lag} - mean), 0 <= lag < S.
  double At(int64_t lag) {
    while (lag >= static_cast<int64_t>(known_.size())) AddLags();
    return known_[lag];
  }

 private:
  static constexpr int64_t kLags = 8;  // lags computed together: independent sums, which the compiler vectorises

  void AddLags() {
    const auto first = static_cast<int64_t>(known_.size());
    std::array<double, kLags> sums = {};
    for (int64_t chain = 0; chain < num_chains_; ++chain) {
      const double* x = centred_.data() + chain * (num_draws_ + kLags);  // zeros follow each chain's draws
      for (int64_t i = 0; i + first < num_draws_; ++i) {
        for (int64_t j = 0; j < kLags; ++j) sums[j] += x[i] * x[i + first + j];
      }
    }
    for (const double sum : sums) known_.push_back(sum / static_cast<double>(num_draws_ * num_chains_));
  }

  const int64_t num_draws_, num_chains_;
  std::vector<double> centred_, means_, known_;
};

// Returns the autocorrelations over all chains up to the end of Geyer's initial positive sequence, made monotone: the
// sum of the counted (rho_0 + rho_1), (rho_2 + rho_3), ..., plus the next even one once.
double AutocorrelationTime(Traces chains) {
  const int64_t n = chains.num_draws();
  MeanAutocovariance autocovariance(chains);
  const double shrink = static_cast<double>(n) / static_cast<double>(n - 1), within = autocovariance.At(0) * shrink;
  const double all = autocovariance.At(0) + (chains.num_chains > 1 ? Variance(autocovariance.means()) : 0);
  std::vector<double> rho(n, 0);
  const auto correlation = [&](int64_t lag) { return 1 - (within - autocovariance.At(lag)) / all; };
  double even = rho[0] = 1, odd = rho[1] = correlation(1);
  if (std::isnan(odd)) return odd;
  int64_t t = 1;
  for (; t < n - 3 && even + odd > 0; t += 2) {
    even = correlation(t + 1);
    odd = correlation(t + 2);
    if (even + odd >= 0) {
      rho[t + 1] = even;
      rho[t + 2] = odd;
    }
  }
  const int64_t last = t - 2;
  if (even > 0) rho[last + 1] = even;
  for (t = 1; t <= last - 2; t += 2) {
    const double before = rho[t - 1] + rho[t];
    if (rho[t + 1] + rho[t + 2] > before) rho[t + 1] = rho[t + 2] = before / 2;
  }
  double sum = 0;
  for (int64_t lag = 0; lag <= last; ++lag) sum += rho[lag];
  return 2 * sum - 1 + rho[last + 1];
}

// Returns the effective sample size of the given chains, not split or transformed.
double EffectiveSize(Traces chains) {
  constexpr double kConstant = 1e-15;  // ArviZ' bound
  const auto [least, most] = std::minmax_element(chains.values.begin(), chains.values.end());
  const double size = static_cast<double>(chains.values.size());
  if (*most - *least < kConstant) return size;
  const double time = AutocorrelationTime(chains);
  // The time of antithetic draws may be 0 or negative.
  return std::isnan(time) ? time : size / std::max(time, 1 / std::log10(size));
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double EssMean(Traces traces) {
  return Usable(traces) ? EffectiveSize({SplitChains(traces), 2 * traces.num_chains}) : kNone;
}

double EssBulk(Traces traces) {
  return Usable(traces) ? EffectiveSize({RankNormalize(SplitChains(traces)), 2 * traces.num_chains}) : kNone;
}

double EssQuantile(Traces traces, double probability) {
  if (!Usable(traces)) return kNone;
  const double quantile = Quantile(traces.values, probability);
  std::vector<double> below = SplitChains(traces);
  for (double& value : below) value = value <= quantile ? 1 : 0;
  return EffectiveSize({below, 2 * traces.num_chains});
}

double EssTail(Traces traces) { return std::min(EssQuantile(traces, 0.05), EssQuantile(traces, 0.95)); }

}  // namespace chainfleet
