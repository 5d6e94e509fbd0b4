// Temperature scaling (Guo et al., ICML 2017) of predicted class probabilities: p_k^(1/T) over its sum, which for one
// network divides its logits by T. Fitted to an average of networks it calibrates the average (Ashukha et al., ICLR
// 2020).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chainfleet {

inline constexpr double kLeastTemperature = 0.01, kMostTemperature = 100;

// The T within the two bounds that minimises the negative log likelihood of `labels` [n] under `probability` [n, K],
// row-major, to a relative 1e-9. The likelihood is convex in 1/T; a bound is the answer where it is still falling
// there (all labels right: no confidence is too high). 1 for n = 0, NaN if a probability is NaN or infinite.
double FitTemperature(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels);

// `probability` at temperature T > 0. A row that has NaN is all NaN then, and so is every row at a T that is NaN.
std::vector<double> ScaleTemperature(std::span<const double> probability, int64_t num_classes, double temperature);

}  // namespace chainfleet
