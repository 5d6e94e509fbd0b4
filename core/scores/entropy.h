// Entropies in nats, and what they say apart: H[mean p] = mean H[p] + mutual information (Houlsby et al. 2011).
#pragma once

#include <span>

namespace chainfleet {

// -sum p log p with 0 log 0 = 0; NaN if one is NaN.
double Entropy(std::span<const double> probability);

// predictive - expected. Negative only by rounding: values within 1e-9 of 0 are returned as 0, anything below that as
// it is (it is a defect of the caller's sums, and hiding it would hide the defect). NaN if one is NaN.
double MutualInformation(double predictive_entropy, double expected_entropy);

}  // namespace chainfleet
