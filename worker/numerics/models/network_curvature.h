// The Gauss-Newton matrix of a network under its likelihood, by ATen operations.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/potentials/curvature.h"

namespace chainfleet {

// Adds that of the examples `x` [1, n, input_shape...] (float, standardised) under one chain's `parameters` [1, shape
// of tensor k...]: a backward pass for each column of a root of H_i. kDiagonal and kFull form the gradients of a few
// examples at a time (64 MiB of them), kKronecker none; it knows linear and ungrouped convolution layers, and there
// must be no other parameters. No batch norm.
void AddNetworkCurvature(const NetworkShape& network, const Likelihood& likelihood,
                         const std::vector<at::Tensor>& parameters, const at::Tensor& x, Curvature* sum);

}  // namespace chainfleet
