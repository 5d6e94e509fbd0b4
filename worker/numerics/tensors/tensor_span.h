// The position of one parameter tensor: a plain value that kernels on every device read.
#pragma once

#include <cstdint>

namespace chainfleet {

// Contiguous in both orders of a Layout.
struct TensorSpan {
  int64_t first = 0;   // p of its first parameter, padding not counted
  int64_t padded = 0;  // position of that parameter in the row, a multiple of 16 floats
  int64_t size = 0;    // number of parameters

  bool operator==(const TensorSpan& other) const {
    return first == other.first && padded == other.padded && size == other.size;
  }
};

}  // namespace chainfleet
