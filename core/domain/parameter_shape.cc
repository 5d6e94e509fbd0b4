#include "core/domain/parameter_shape.h"

#include <numeric>

#include "core/base/saturating.h"

namespace chainfleet {

int64_t NumValues(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, SaturatingMultiply);
}

int64_t NumParameters(const std::vector<ParameterShape>& parameters) {
  return parameters.empty() ? 0 : SaturatingAdd(parameters.back().offset, NumValues(parameters.back().shape));
}

}  // namespace chainfleet
