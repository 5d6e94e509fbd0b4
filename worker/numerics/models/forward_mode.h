// Options of a network's forward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/models/example_norms.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// Input and output of a product with a weight, in the layout of the pass: images as [n, C * channels, height, width],
// else [C, n, features], where each position of a sequence, and each window of a conv1d, is a row.
struct LayerTap {
  const PlacedLayer* layer;
  at::Tensor input, output;
};

struct ForwardMode {
  // [C], one per chain: drops units by stream kDropout. Null: all units are used.
  const StepKey* dropout = nullptr;
  // [C, channels] each, means and variances alternating: batch norm normalises with them. Null: with the current
  // minibatch.
  const std::vector<at::Tensor>* statistics = nullptr;
  // If set, the minibatch's own means and (unbiased) variances are appended, [C, channels] each.
  std::vector<at::Tensor>* batch_statistics = nullptr;
  // If set, every layer with parameters is appended, with the tensors from which a backward pass gives the norms of
  // each example's gradient. Not for networks with batch norm, because their examples share the normalisation.
  std::vector<LayerTrace>* traces = nullptr;
  // If set, every linear and convolution layer is appended, and both products of an attention.
  std::vector<LayerTap>* taps = nullptr;
};

}  // namespace chainfleet
