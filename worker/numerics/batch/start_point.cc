#include "worker/numerics/batch/start_point.h"

#include <algorithm>
#include <cmath>

namespace chainfleet {
namespace {

// Counters of kInit: the uniform start has step 0.
constexpr uint64_t kPerturbation = 1;

std::vector<float> RandomStart(const Layout& layout, RngKey key) {
  std::vector<float> theta(layout.num_parameters(), 0.0f);
  for (size_t k = 0; k < layout.parameters().size(); ++k) {
    const ParameterShape& parameter = layout.parameters()[k];
    const TensorSpan& span = layout.spans()[k];
    if (parameter.fan_in == 0) {
      std::fill_n(theta.begin() + span.first, span.size, parameter.initial);
      continue;
    }
    const float bound = 1 / std::sqrt(static_cast<float>(parameter.fan_in));
    for (int64_t p = span.first; p < span.first + span.size; ++p) {
      const int64_t r = p % 64;
      const PhiloxBlock block = RandomBlock(key, RngStream::kInit, 0, static_cast<uint32_t>(p / 64 * 16 + r % 16));
      theta[p] = bound * (2 * UniformFloat(block.word[r / 16]) - 1);
    }
  }
  return theta;
}

std::vector<float> RowOf(const std::vector<double>& points, int64_t num_parameters, int32_t index) {
  if (points.size() == 1) return std::vector<float>(num_parameters, static_cast<float>(points.front()));
  const int64_t rows = static_cast<int64_t>(points.size()) / num_parameters;
  const auto row = points.begin() + index % rows * num_parameters;
  return {row, row + num_parameters};
}

}  // namespace

std::vector<float> StartOfChain(const Layout& layout, const InitSpec& init, int32_t index, RngKey key) {
  const int64_t d = layout.num_parameters();
  std::vector<float> theta = init.theta.empty() ? RandomStart(layout, key) : RowOf(init.theta, d, index);
  for (int64_t p = 0; p < d && init.perturb > 0; ++p) {
    const double noise = NormalDouble(key, RngStream::kInit, kPerturbation, static_cast<uint32_t>(p));
    theta[p] = static_cast<float>(theta[p] + init.perturb * noise);
  }
  return theta;
}

}  // namespace chainfleet
