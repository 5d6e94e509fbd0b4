#include "worker/numerics/models/architecture.h"

namespace chainfleet {

// LeCun et al., "Gradient-based learning applied to document recognition", 1998, with ReLU and max pooling.
Architecture Lenet5(const std::vector<int64_t>& input_shape, int64_t num_classes) {
  Architecture network{.input_shape = input_shape, .padding = 2};
  const int64_t height = input_shape[1] + 4, width = input_shape[2] + 4;
  const ConvShape first{input_shape[0], 6, 5, height, width};
  const ConvShape second{6, 16, 5, first.pooled_height(), first.pooled_width()};
  network.convolutions = {first, second};
  network.dense = {{second.output_size(), 120}, {120, 84}, {84, num_classes}};
  return network;
}

}  // namespace chainfleet
