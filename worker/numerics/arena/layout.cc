#include "worker/numerics/arena/layout.h"

#include <algorithm>

#include "core/base/check.h"

namespace chainfleet {

Layout::Layout(std::vector<ParameterShape> parameters) : parameters_(std::move(parameters)) {
  constexpr int64_t kAlignment = kAlignmentBytes / sizeof(float);
  for (const ParameterShape& parameter : parameters_) {
    CHAINFLEET_CHECK(parameter.offset == num_parameters_) << parameter.name << " leaves a gap in the layout";
    int64_t size = 1;
    for (const int64_t extent : parameter.shape) size *= extent;
    spans_.push_back({num_parameters_, row_stride_, size});
    num_parameters_ += size;
    row_stride_ += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
}

void Layout::Pack(const float* row, float* flat) const {
  for (const TensorSpan& span : spans_) std::copy_n(row + span.padded, span.size, flat + span.first);
}

void Layout::Unpack(const float* flat, float* row) const {
  for (const TensorSpan& span : spans_) std::copy_n(flat + span.first, span.size, row + span.padded);
}

}  // namespace chainfleet
