// Entropies in nats: H[mean p] = mean H[p] + mutual information (Houlsby et al. 2011).
#pragma once

#include <span>

namespace chainfleet {

// Returns -sum p log p with 0 log 0 = 0; NaN if a probability is NaN.
double Entropy(std::span<const double> probability);

// Returns predictive - expected, NaN if one is NaN. The difference is negative only by rounding: values within 1e-9 of
// 0 become 0. Lower values are returned unchanged, because hiding them would hide a defect in the caller's sums.
double MutualInformation(double predictive_entropy, double expected_entropy);

}  // namespace chainfleet
