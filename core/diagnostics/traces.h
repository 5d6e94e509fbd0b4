// The draws of one scalar quantity, chain by chain: the input of the diagnostics in this folder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chainfleet {

// `values` [C, S], row-major, each chain's draws in order; not owned. C >= 1 divides the number of values.
struct Traces {
  std::span<const double> values;
  int64_t num_chains = 1;

  int64_t num_draws() const { return static_cast<int64_t>(values.size()) / num_chains; }  // S
  std::span<const double> Chain(int64_t chain) const { return values.subspan(chain * num_draws(), num_draws()); }
};

inline constexpr int64_t kFewestDraws = 4;  // a chain's draws: each half has two

// True if each chain has kFewestDraws or more and no value is NaN. For other traces every diagnostic returns NaN.
bool Usable(Traces traces);

// Returns each chain's first and last floor(S/2) draws as chains, [2C, S/2]: first halves, then last halves. Drops the
// middle of an odd number of draws.
std::vector<double> SplitChains(Traces traces);

// Returns the mean of a non-empty range; exact if all values are equal.
double Mean(std::span<const double> values);

// Returns the sum of squared distances from the mean over n - 1; NaN for one value.
double Variance(std::span<const double> values);

// Returns the `probability` quantile (0..1) of a non-empty range, linear between order statistics (Hyndman and Fan
// 1996, type 7).
double Quantile(std::span<const double> values, double probability);

}  // namespace chainfleet
