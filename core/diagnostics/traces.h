// The draws of one scalar quantity, chain by chain: what the diagnostics of this folder read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chainfleet {

// `values` [C, S], row-major, a chain's draws in their order; not owned. C >= 1 divides the number of values.
struct Traces {
  std::span<const double> values;
  int64_t num_chains = 1;

  int64_t num_draws() const { return static_cast<int64_t>(values.size()) / num_chains; }  // S
  std::span<const double> Chain(int64_t chain) const { return values.subspan(chain * num_draws(), num_draws()); }
};

inline constexpr int64_t kFewestDraws = 4;  // of a chain, to be split and still have two on either side

// At least kFewestDraws a chain and no NaN: what every diagnostic needs, each is NaN of anything else.
bool Usable(Traces traces);

// Each chain's first and last floor(S/2) draws as chains of their own, [2C, S/2] in the order first halves, last
// halves; the middle of an odd number of draws is left out.
std::vector<double> SplitChains(Traces traces);

// Mean of a non-empty range; exact if all values are equal.
double Mean(std::span<const double> values);

// Sum of squared distances from the mean over n - 1; NaN for one value.
double Variance(std::span<const double> values);

// The `probability` quantile (0..1) of a non-empty range, linear between order statistics (Hyndman and Fan 1996, type
// 7).
double Quantile(std::span<const double> values, double probability);

}  // namespace chainfleet
