#include "core/diagnostics/rank_normalize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace chainfleet {
namespace {

using Coefficients = std::array<double, 8>;

// Coefficients of Wichura, Applied Statistics 37 (1988), AS 241: numerator and denominator around the median, in the
// tails (up to about 1e-11) and beyond.
constexpr Coefficients kMiddleOver = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                      1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                      3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr Coefficients kMiddleUnder = {1.0,
                                       4.2313330701600911252e+1,
                                       6.8718700749205790830e+2,
                                       5.3941960214247511077e+3,
                                       2.1213794301586595867e+4,
                                       3.9307895800092710610e+4,
                                       2.8729085735721942674e+4,
                                       5.2264952788528545610e+3};
constexpr Coefficients kTailOver = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                    3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                    2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Coefficients kTailUnder = {1.0,
                                     2.05319162663775882187e0,
                                     1.67638483018380384940e0,
                                     6.89767334985100004550e-1,
                                     1.48103976427480074590e-1,
                                     1.51986665636164571966e-2,
                                     5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
constexpr Coefficients kFarOver = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                   2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                   2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr Coefficients kFarUnder = {1.0,
                                    5.99832206555887937690e-1,
                                    1.36929880922735805310e-1,
                                    1.48753612908506148525e-2,
                                    7.86869131145613259100e-4,
                                    1.84631831751005468180e-5,
                                    1.42151175831644588870e-7,
                                    2.04426310338993978564e-15};

double Ratio(const Coefficients& over, const Coefficients& under, double x) {
  double numerator = over[7], denominator = under[7];
  for (int i = 6; i >= 0; --i) {
    numerator = numerator * x + over[i];
    denominator = denominator * x + under[i];
  }
  return numerator / denominator;
}

}  // namespace

double NormalQuantile(double probability) {
  const double q = probability - 0.5;
  if (std::abs(q) <= 0.425) return q * Ratio(kMiddleOver, kMiddleUnder, 0.180625 - q * q);
  const double tail = std::min(probability, 1 - probability);
  if (tail <= 0) return std::copysign(std::numeric_limits<double>::infinity(), q);
  const double r = std::sqrt(-std::log(tail));
  const double z = r <= 5 ? Ratio(kTailOver, kTailUnder, r - 1.6) : Ratio(kFarOver, kFarUnder, r - 5);
  return std::copysign(z, q);
}

std::vector<double> RankNormalize(std::span<const double> values) {
  // std::sort needs an order, and the loop over ties needs values that equal themselves.
  if (std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); })) {
    return std::vector<double>(values.size(), std::numeric_limits<double>::quiet_NaN());
  }
  std::vector<std::pair<double, size_t>> order;
  order.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) order.emplace_back(values[i], i);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<double> scores(values.size());
  const double n = static_cast<double>(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    ++end;
    while (end < order.size() && order[end].first == order[begin].first) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    const double score = NormalQuantile((rank - 0.375) / (n + 0.25));
    for (size_t i = begin; i < end; ++i) scores[order[i].second] = score;
  }
  return scores;
}

}  // namespace chainfleet
