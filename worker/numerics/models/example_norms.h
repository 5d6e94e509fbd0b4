// The norms of each example's gradient, from the inputs and outputs of an eager network's layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/network_shape.h"

namespace chainfleet {

// A layer with parameters in one forward pass, kept until the backward pass has passed it. Images are [n, C * channels,
// height, width], sequences [C, n, length, width], other values [C, n, features].
struct LayerTrace {
  const PlacedLayer* layer = nullptr;
  // For products with a weight (conv, conv1d, linear, attention) and for embedding, whose input is the indices; the
  // output keeps its gradient.
  at::Tensor input, output;
  // For norms and positions: their tensors, repeated for each example, such as [n, C * channels, 1, 1] of an image;
  // they keep their gradients.
  std::vector<at::Tensor> of_example;
};

// [C, n] double: the squared norm, for each example, of the gradient with respect to the layer's parameters. Linear,
// with d the gradient of the output and a the input: |d|^2 (|a|^2 + 1), where the 1 is for a bias. Convolution: |sum
// over pixels p of d_p a_p'|^2 + |sum d_p|^2. The product is formed for one example at a time (on a GPU for several)
// and then dropped. Sequences: the same over positions p, for all examples at once. Embedding: the sum of d_p . d_q
// over positions p and q with the same index.
at::Tensor SquaredExampleNorms(const LayerTrace& trace, int64_t chains);

}  // namespace chainfleet
