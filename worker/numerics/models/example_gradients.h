// The gradient of each single example, by ATen operations.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/likelihoods/likelihood.h"

namespace chainfleet {

class StoredNetwork;

// One chain's `parameters` [1, shape of tensor k...] repeated for each of `count` examples, [count, shape of tensor
// k...], as leaves of autograd. If examples are passed as chains of one image each, autograd gives the gradient of
// each.
std::vector<at::Tensor> LeavesOfExamples(const std::vector<at::Tensor>& parameters, int64_t count);

// [n, D], float32: the gradient of each example's -log likelihood with respect to the parameters, in order without
// padding. `parameters` and `statistics` (which batch norm normalises with; may be empty) are views [1, shape...] of a
// draw. x is [n, input_shape...] float, standardised; targets [n] are int64 labels or float32. With `script` the
// network is a module, and `network` its shape; it runs one example at a time.
at::Tensor ExampleGradients(const NetworkShape& network, const StoredNetwork* script, const Likelihood& likelihood,
                            const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& statistics,
                            const at::Tensor& x, const at::Tensor& targets);

// Returns the outputs [1, K] of example i of a stored network for one chain's parameters.
using OutputsOfExample = std::function<at::Tensor(const std::vector<at::Tensor>& parameters, int64_t i)>;

// [n], double: the squared norm of the gradient of each example's -log likelihood. Examples run one at a time, because
// a stored network shows no layers. targets [n].
at::Tensor StoredExampleNorms(const Likelihood& likelihood, const std::vector<at::Tensor>& parameters,
                              const at::Tensor& targets, const OutputsOfExample& outputs_of);

}  // namespace chainfleet
