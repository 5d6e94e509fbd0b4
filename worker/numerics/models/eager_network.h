// A list of layers in ATen operations, all chains in one call: linear layers as one batched product, convolutions
// grouped (groups = C), batch norm over C * channels. The way of a GPU; a CPU runs it with one chain at a time, where
// a grouped convolution is slower than a loop.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/models/example_norms.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// Input and output of a linear or convolution layer, in the layout of the pass: images as [n, C * channels, height,
// width], else [C, n, features].
struct LayerTap {
  const PlacedLayer* layer;
  at::Tensor input, output;
};

// How a forward pass goes beyond parameters and inputs.
struct ForwardMode {
  // [C], one per chain: units drop out by stream kDropout. Null: all units are used.
  const StepKey* dropout = nullptr;
  // [C, channels] each, mean and variance in turn: batch norm normalises by them. Null: by the current batch.
  const std::vector<at::Tensor>* statistics = nullptr;
  // If set, the batch's own means and (unbiased) variances are appended, [C, channels] each.
  std::vector<at::Tensor>* batch_statistics = nullptr;
  // If set, every layer with parameters is appended, with what a backward pass leaves for the norms of each example's
  // gradient. Not for networks with batch norm, whose examples share what they are normalised by.
  std::vector<LayerTrace>* traces = nullptr;
  // If set, every linear and convolution layer is appended.
  std::vector<LayerTap>* taps = nullptr;
};

// Logits [C, n, K] for x [C, n, input_shape...] (float, standardised) and `parameters[k]` [C, shape of tensor k...], on
// one device. Autograd follows parameters that ask for it.
at::Tensor EagerLogits(const NetworkShape& network, const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                       const ForwardMode& mode = {});

}  // namespace chainfleet
