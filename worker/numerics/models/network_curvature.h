// The Gauss-Newton matrix of a network under its likelihood, by ATen operations.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/models/example_gradients.h"
#include "worker/numerics/potentials/curvature.h"

namespace chainfleet {

// Adds the matrix of the examples `x` [1, n, input_shape...] (float, standardised) under one chain's `parameters` [1,
// shape of tensor k...], with one backward pass for each column of a square root of H_i. kDiagonal and kFull form the
// gradients of a few examples at a time (64 MiB). kKronecker forms none; it supports linear and ungrouped convolution
// layers, and there must be no other parameters. No batch norm.
void AddNetworkCurvature(const NetworkShape& network, const Likelihood& likelihood,
                         const std::vector<at::Tensor>& parameters, const at::Tensor& x, Curvature* sum);

// As above for `count` examples of a network whose layers are unknown: kDiagonal and kFull, one example at a time.
void AddStoredCurvature(const Likelihood& likelihood, const std::vector<at::Tensor>& parameters, int64_t count,
                        const OutputsOfExample& outputs_of, Curvature* sum);

}  // namespace chainfleet
