// Measures of how well a score separates a positive class (out of distribution, misclassified) from a negative one.
#pragma once

#include <span>

namespace chainfleet {

// Returns the area under the ROC curve = P(score of a positive > score of a negative); a tie counts one half. NaN if a
// side is empty, or if a score is NaN, which has no rank.
double Auroc(std::span<const double> positive, std::span<const double> negative);

// Returns the average precision: sum over distinct thresholds, high to low, of (recall step) x precision. NaN without
// positives, or if a score is NaN.
double Aupr(std::span<const double> positive, std::span<const double> negative);

}  // namespace chainfleet
