// A device as LibTorch names it, and at::Tensor views of an arena's memory: no copy, no ownership, valid until rows are
// added to the arena.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/numerics/theta_arena.h"

namespace chainfleet {

at::Device TorchDevice(Device device);

// [C, row_stride], padding included.
at::Tensor RowsView(const ThetaArena& arena);

// [C, shape...] of parameter tensor `k`, strided over rows; a detached leaf that autograd never follows to the arena.
at::Tensor ParameterView(const ThetaArena& arena, int64_t k);

}  // namespace chainfleet
