// Temperature scaling (Guo et al., ICML 2017) of predicted class probabilities: p_k^(1/T), normalised, which divides
// the logits of one network by T. A temperature fitted to an average of networks calibrates the average (Ashukha et
// al., ICLR 2020).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chainfleet {

inline constexpr double kLeastTemperature = 0.01, kMostTemperature = 100;

// Returns the T within the two bounds that minimises the negative log likelihood of `labels` [n] under `probability`
// [n, K], row-major, to a relative 1e-9. The likelihood is convex in 1/T. The result is a bound if the likelihood still
// falls there (all labels right: no confidence is too high). 1 for n = 0, NaN if a probability is NaN or infinite.
double FitTemperature(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels);

// Returns `probability` at temperature T > 0. A row with a NaN becomes all NaN; a NaN T makes every row NaN.
std::vector<double> ScaleTemperature(std::span<const double> probability, int64_t num_classes, double temperature);

}  // namespace chainfleet
