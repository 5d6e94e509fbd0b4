// A list of layers in ATen operations, all chains in one call: linear layers as one batched product, convolutions
// grouped (groups = C), batch norm over C * channels. A GPU runs it for all chains together. A CPU runs it for one
// chain at a time, because a grouped convolution is slower there than a loop.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/models/forward_mode.h"

namespace chainfleet {

// Logits [C, n, K] for x [C, n, input_shape...] (float, standardised, or indices) and `parameters[k]` [C, shape of
// tensor k...], on one device. Throws c10::ValueError for an index that the network does not know; on a GPU the index
// has a vector of NaN. Differentiable by autograd in parameters that require gradients.
at::Tensor EagerLogits(const NetworkShape& network, const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                       const ForwardMode& mode = {});

}  // namespace chainfleet
