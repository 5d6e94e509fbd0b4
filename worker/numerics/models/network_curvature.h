// The Gauss-Newton matrix of a network with a softmax over its logits, by ATen operations.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/curvature.h"

namespace chainfleet {

// Adds that of the examples `x` [1, n, input_shape...] (float, standardised) under one chain's `parameters` [1, shape
// of tensor k...]. H_i = diag(p) - p p' has the columns sqrt(p_k) (e_k - p) for a root, so this takes K backward
// passes. kDiagonal and kFull form the gradients of a few examples at a time (64 MiB of them), kKronecker none; it
// knows linear and ungrouped convolution layers, and the network must have no other parameters. No batch norm.
void AddNetworkCurvature(const NetworkShape& network, const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                         Curvature* sum);

}  // namespace chainfleet
