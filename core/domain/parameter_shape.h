// Parameter tensors as values: the order, shapes and starting points of what is sampled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chainfleet {

// One tensor in layout order; `offset` counts values from the start of theta, no padding.
struct ParameterShape {
  std::string name;  // "conv1.weight"
  std::vector<int64_t> shape;
  int64_t offset = 0;
  int64_t fan_in = 0;  // of the layer: starts at uniform(-1/sqrt(fan_in), 1/sqrt(fan_in)); 0 starts at `initial`
  float initial = 0;
};

// Values of one tensor of [shape...].
int64_t NumValues(const std::vector<int64_t>& shape);

// Values of all tensors up to the end of the last: D for the parameters of a model.
int64_t NumParameters(const std::vector<ParameterShape>& parameters);

}  // namespace chainfleet
