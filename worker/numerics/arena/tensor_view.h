// LibTorch's name of a device, host memory on a device, and at::Tensor views of an arena's memory: no copy, no
// ownership, valid until rows are added to the arena.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/numerics/arena/theta_arena.h"

namespace chainfleet {

at::Device TorchDevice(Device device);

// Host memory as a tensor on `device`; on a CPU the tensor is that memory. The host does not wait for a GPU: the copy
// that the GPU reads is pinned, and LibTorch keeps it until it was read.
at::Tensor Uploaded(const int64_t* values, at::IntArrayRef sizes, at::Device device);
at::Tensor Uploaded(const float* values, at::IntArrayRef sizes, at::Device device);
at::Tensor Uploaded(const double* values, at::IntArrayRef sizes, at::Device device);

// [C, row_stride], padding included.
at::Tensor RowsView(const ThetaArena& arena);

// [C, shape...] of parameter tensor `k`, strided over rows; a detached leaf that autograd never follows to the arena.
at::Tensor ParameterView(const ThetaArena& arena, int64_t k);

}  // namespace chainfleet
