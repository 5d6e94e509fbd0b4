#include "worker/numerics/models/row_positions.h"

#include <cstring>

namespace chainfleet {
namespace {

bool SameAlong(int64_t axis, int64_t step, const at::Tensor& values) {
  const at::Tensor slices = values.transpose(0, axis).slice(0, 0, values.size(axis), step).contiguous();
  const auto* const first = static_cast<const char*>(slices.const_data_ptr());
  const size_t size = slices.nbytes() / static_cast<size_t>(slices.size(0));
  for (size_t i = size; i < slices.nbytes(); i += size) {
    if (std::memcmp(first + i, first, size) != 0) return false;
  }
  return true;
}

}  // namespace

bool SameAtPositions(const at::Tensor& values, int64_t rows, int64_t step) {
  if (values.numel() == 0) return true;
  bool has_rows = false;
  for (int64_t axis = 0; axis < values.dim(); ++axis) {
    if (values.size(axis) != rows) continue;
    has_rows = true;
    if (SameAlong(axis, step, values)) return true;
  }
  return !has_rows;
}

}  // namespace chainfleet
