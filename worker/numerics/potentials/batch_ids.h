// The ids of a minibatch on the device of a potential.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// The ids of rows [first, first + count): [count * n] int64 on `device`. A GPU draws the ids that are not drawn yet.
at::Tensor BatchIds(const BatchRows& batch, int64_t first, int64_t count, at::Device device);

}  // namespace chainfleet
