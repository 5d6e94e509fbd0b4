// Compares the bits of a row at several positions of a pass over several rows.
//
// Libraries of LibTorch choose kernels by the alignment of the memory that they read. So the rows of a matrix whose
// rows are no multiple of 16 bytes may be summed in different orders.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chainfleet {

// True if the slices 0, `step`, 2 `step`, ... along some axis of size `rows` have the same bits, or if no axis has this
// size.
bool SameAtPositions(const at::Tensor& values, int64_t rows, int64_t step);

}  // namespace chainfleet
