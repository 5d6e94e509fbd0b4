// A layer list checked against its inputs: shapes, parameters and statistics of every layer, without torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/layer_spec.h"
#include "core/domain/parameter_shape.h"

namespace chainfleet {

inline bool IsSequence(const std::vector<int64_t>& shape) { return shape.size() == 2; }

// A layer at its position in a network. Shapes are those of one example.
struct PlacedLayer {
  LayerKind kind;    // without its inner lists, which `branch` and `shortcut` hold
  std::string name;  // "residual2.branch.conv1", for its tensors and for messages
  std::vector<int64_t> input, output;
  bool padded = false;   // the sequence has positions that hold the padding of the network's embedding
  size_t parameter = 0;  // index of its first parameter tensor
  size_t statistic = 0;  // batch_norm: index of its mean; the variance follows
  std::vector<PlacedLayer> branch, shortcut;  // residual and concat only
};

struct NetworkShape {
  std::vector<int64_t> input_shape;
  int64_t num_outputs = 0;
  std::vector<PlacedLayer> layers;         // the last one's output is [num_outputs]
  std::vector<ParameterShape> parameters;  // the sampled values, in layout order
  std::vector<ParameterShape> statistics;  // batch norm's, kept with a draw; offsets continue after the parameters
  int64_t activation_floats = 0;           // values that all layers compute together, for one example
  int64_t largest_output = 0;              // values of the largest tensor among them

  int64_t draw_size() const { return NumParameters(statistics.empty() ? parameters : statistics); }
};

// Names count each kind within its list: conv1, fc1 (linear), bn1 (batch_norm), frn1, residual1, concat1, ...
// INVALID_ARGUMENT has a violation at the first layer whose input does not fit ("model.layers[3]", with the layer's
// name and the shapes), with paths below `path`. REQUIRES: `layers` have passed Validate.
absl::StatusOr<NetworkShape> InferNetwork(const LayerList& layers, const std::vector<int64_t>& input_shape,
                                          int64_t num_outputs, const std::string& path);

}  // namespace chainfleet
