// Parameter tensors as values: order, shapes and start values of the sampled parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace chainfleet {

// One tensor in layout order; `offset` counts values from the start of theta, without padding.
struct ParameterShape {
  std::string name;  // "conv1.weight"
  std::vector<int64_t> shape;
  int64_t offset = 0;
  int64_t fan_in = 0;  // starts at uniform(-1/sqrt(fan_in), 1/sqrt(fan_in)); 0: starts at `initial`
  float initial = 0;
  std::shared_ptr<const float> stored = nullptr;  // the values in the file of a stored network, on the host
};

// Returns the number of values of one tensor of [shape...].
int64_t NumValues(const std::vector<int64_t>& shape);

// Returns the number of values up to the end of the last tensor: D for the parameters of a model.
int64_t NumParameters(const std::vector<ParameterShape>& parameters);

}  // namespace chainfleet
