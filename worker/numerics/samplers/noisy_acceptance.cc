#include "worker/numerics/samplers/noisy_acceptance.h"

#include <cmath>
#include <numbers>

namespace chainfleet {
namespace {

// Four terms of either series are exact to double on its side of 1.
double KolmogorovCdf(double k) {
  double sum = 0;
  if (k < 1) {
    for (int j = 1; j <= 7; j += 2) sum += std::exp(-j * j * std::numbers::pi * std::numbers::pi / (8 * k * k));
    return std::sqrt(2 * std::numbers::pi) / k * sum;
  }
  for (int j = 4; j >= 1; --j) sum = std::exp(-2 * j * j * k * k) - sum;
  return 1 - 2 * sum;
}

}  // namespace

double CorrectedPenalty(double x, int64_t num_batches) {
  const double m = static_cast<double>(num_batches);
  return x / 2 + x * x / (4 * (m + 1)) + x * x * x / (3 * (m + 1) * (m + 3));
}

double KolmogorovQuantile(double u) {
  double least = 0.05, most = 6;
  for (int i = 0; i < 48; ++i) {
    const double middle = (least + most) / 2;
    (KolmogorovCdf(middle) < u ? least : most) = middle;
  }
  return (least + most) / 2;
}

LogisticRemainder RemainderToLogistic(const ChainStep& chain, double x) {
  const auto t = static_cast<uint64_t>(chain.t);
  const PhiloxBlock block = RandomBlock(chain.key, RngStream::kAccept, t, 0);
  const double k = KolmogorovQuantile(UniformDouble(block.word[0], block.word[1]));
  const double variance = 4 * k * k - x;
  if (!(variance > 0)) return {0, true};
  return {std::sqrt(variance) * NormalDouble(chain.key, RngStream::kAccept, t, 1), false};
}

}  // namespace chainfleet
