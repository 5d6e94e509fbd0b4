// Weights of chains that mix badly, or of models, from their predictions of held-out rows.
//
// `log_density` is row-major [n, K]: the logarithm of the probability or density that chain k's own average gives row
// i. The weights [K] are not negative and sum to 1; they are NaN if a value is NaN.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chainfleet {

// Returns the w that maximise sum_i log sum_k w_k p_ik (Yao, Vehtari and Gelman, "Stacking for Non-mixing Bayesian
// Computations", JMLR 23, 2022, section 2). A row to which no chain gives a density says nothing. Chains with the same
// predictions get the same weight. Takes O(n K^2) time for each of a few dozen steps, and n K doubles.
std::vector<double> StackingWeights(std::span<const double> log_density, int64_t num_chains);

// Returns w_k = exp(elpd_k) / sum_j exp(elpd_j), elpd_k = sum_i log p_ik (Yao et al., "Using stacking to average
// Bayesian predictive distributions", Bayesian Analysis 13, 2018, section 3.4).
std::vector<double> PseudoBmaWeights(std::span<const double> log_density, int64_t num_chains);

}  // namespace chainfleet
