// The norms of each example's gradient, from the inputs and outputs of an eager network's layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/network_shape.h"

namespace chainfleet {

// A layer with parameters in one forward pass, kept until the backward pass has passed it. Images are [n, C * channels,
// height, width], other values [C, n, features].
struct LayerTrace {
  const PlacedLayer* layer = nullptr;
  // For conv and linear layers; the output keeps its gradient.
  at::Tensor input, output;
  // For frn layers: scale, shift and threshold, repeated for each example, [n, C * channels, 1, 1]; they keep their
  // gradients.
  std::vector<at::Tensor> of_example;
};

// [C, n] double: the squared norm, for each example, of the gradient with respect to the layer's parameters. Linear,
// with d the gradient of the output and a the input: |d|^2 (|a|^2 + 1), where the 1 is for a bias. Convolution: |sum
// over pixels p of d_p a_p'|^2 + |sum d_p|^2. The product is formed for one example at a time (on a GPU for several)
// and then dropped.
at::Tensor SquaredExampleNorms(const LayerTrace& trace, int64_t chains);

}  // namespace chainfleet
