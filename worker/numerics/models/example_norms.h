// The norms of each example's gradient, from what a layer of an eager network saw and gave.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/network_shape.h"

namespace chainfleet {

// A layer with parameters in one forward pass, kept until the backward one has gone through it. Images lie as [n, C *
// channels, height, width], all else as [C, n, features].
struct LayerTrace {
  const PlacedLayer* layer = nullptr;
  // For conv and linear layers; the output keeps its gradient.
  at::Tensor input, output;
  // For frn layers: scale, shift and threshold once for each example [n, C * channels, 1, 1]; they keep their
  // gradients.
  std::vector<at::Tensor> of_example;
};

// [C, n] double: the squared norm of the layer's part of d (what was back-propagated) / d parameters, example by
// example. Linear with d, a the output's gradient and the input: |d|^2 (|a|^2 + 1), the 1 with a bias. Convolution:
// |sum over pixels p of d_p a_p'|^2 + |sum d_p|^2, the product formed for one example, on a GPU for some, and dropped.
at::Tensor SquaredExampleNorms(const LayerTrace& trace, int64_t chains);

}  // namespace chainfleet
