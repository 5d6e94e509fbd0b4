// Each example's own gradient, by ATen operations.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/likelihoods/likelihood.h"

namespace chainfleet {

class ScriptedNetwork;

// One chain's `parameters` [1, shape of tensor k...] once for each of `count` examples, [count, shape of tensor k...]:
// leaves that autograd stops at. With examples as chains of one image each, it gives each one's own gradient.
std::vector<at::Tensor> LeavesOfExamples(const std::vector<at::Tensor>& parameters, int64_t count);

// [n, D], float32: the gradient of each example's -log likelihood by the parameters, in order without padding.
// `parameters` and `statistics` (of batch norm, which normalises by them; may be none) are views [1, shape...] of a
// draw; x [n, input_shape...] float, standardised; targets [n], int64 labels or float32. `script`: the network is a
// module, and `network` its shape; it goes one example at a time.
at::Tensor ExampleGradients(const NetworkShape& network, const ScriptedNetwork* script, const Likelihood& likelihood,
                            const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& statistics,
                            const at::Tensor& x, const at::Tensor& targets);

}  // namespace chainfleet
