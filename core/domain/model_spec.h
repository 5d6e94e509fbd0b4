// What is sampled: a built-in network or an analytic potential. Shapes, parameter counts and memory are inferred here,
// without torch, so that a bad model is refused at submit.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

// Names the server knows: softmax_regression, mlp, lenet5.
struct BuiltinModel {
  std::string name;
  std::vector<int64_t> hidden;  // mlp only, widths of the hidden layers; empty means 200, 200
  bool operator==(const BuiltinModel&) const = default;
};

// U(theta) = precision/2 |theta|^2 in `dimension` independent coordinates (N = 1, no data set): the law every kernel is
// held to.
struct GaussianPotential {
  int64_t dimension = 1;
  double precision = 1;
  bool operator==(const GaussianPotential&) const = default;
};

struct ModelSpec {
  std::variant<BuiltinModel, GaussianPotential> kind;
  bool is_network() const { return std::holds_alternative<BuiltinModel>(kind); }
  bool operator==(const ModelSpec&) const = default;
};

// One parameter tensor in layout order; `offset` counts parameters from the start of theta, no padding.
struct ParameterShape {
  std::string name;  // "conv1.weight"
  std::vector<int64_t> shape;
  int64_t offset = 0;
  int64_t fan_in = 0;  // of the layer, for the initial uniform(-1/sqrt(fan_in), 1/sqrt(fan_in)); 0 starts at zero
};

// The parameters of `model` for inputs [input_shape...] (no batch dimension: {1, 28, 28}) and `num_classes` outputs.
// INVALID_ARGUMENT naming the field path if the model is unknown or the shapes do not fit.
absl::StatusOr<std::vector<ParameterShape>> InferParameters(const ModelSpec& model,
                                                            const std::vector<int64_t>& input_shape,
                                                            int64_t num_classes);

// Sum of all parameters: D.
int64_t NumParameters(const std::vector<ParameterShape>& parameters);

// Rough bytes of device memory for one chain with batches of `batch_size`: parameters, gradients, state and
// activations.
int64_t EstimateChainBytes(const ModelSpec& model, const std::vector<int64_t>& input_shape, int64_t num_classes,
                           int64_t batch_size);

// Violations with paths below "model".
std::vector<FieldViolation> Validate(const ModelSpec& model);

}  // namespace chainfleet
