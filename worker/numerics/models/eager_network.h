// The same networks in ATen operations, all chains in one call: dense layers as one batched product, convolutions
// grouped (groups = C). The way of a GPU; on a CPU the reference that the fused kernels are held to.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "worker/numerics/models/architecture.h"

namespace chainfleet {

// Logits [C, n, K] for x [C, n, input_shape...] (float32, standardised) and `parameters[k]` [C, shape of tensor k...],
// on one device. Autograd follows parameters that ask for it.
at::Tensor EagerLogits(const Architecture& architecture, const std::vector<at::Tensor>& parameters,
                       const at::Tensor& x);

}  // namespace chainfleet
