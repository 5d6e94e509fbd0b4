// The networks that the fused CPU kernels run: convolutions with ReLU and 2x2 max pool, followed by dense layers with
// ReLU between them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/kernels/conv.h"
#include "worker/numerics/kernels/dense.h"

namespace chainfleet {

// Layer l, counted over both lists, has the parameter tensors 2 l (weight) and 2 l + 1 (bias) of the layout.
struct Architecture {
  std::vector<int64_t> input_shape;  // shape of one example: [channels, height, width], or any shape for dense networks
  int64_t padding = 0;               // zeros around the image, in pixels, for the first convolution
  std::vector<ConvShape> convolutions;  // the first one's input is padded
  std::vector<DenseShape> dense;        // at least one; the last one gives the network's outputs
  int64_t input_size() const { return NumValues(input_shape); }
  int64_t num_outputs() const { return dense.back().outputs; }
};

// The network for the fused kernels; nullopt if they do not support one of its layers.
std::optional<Architecture> FusedArchitecture(const NetworkShape& network);

}  // namespace chainfleet
