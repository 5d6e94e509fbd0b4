// The inputs of a .pt2 file and the rows of a data set that hold them (WhyUnread). Throws LibTorch's exceptions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/formats/exported_program.h"

namespace chainfleet {

class InputColumns {
 public:
  // REQUIRES: WhyUnread accepts the inputs.
  explicit InputColumns(const std::vector<ExportedSignature>& inputs);

  // The inputs [..., shape...], contiguous, of float32 rows x [..., row]. Throws c10::ValueError for indices that are
  // not whole, and for a mask that has other numbers than 0 and 1; on a GPU these are rounded.
  std::vector<at::Tensor> Split(const at::Tensor& x) const;

  // Rows for a trial, made of any numbers x [..., row]. Indices become 0 and 1, which most networks know; a mask along
  // a longer axis has both, because attention to nothing is NaN.
  at::Tensor Possible(const at::Tensor& x) const;

 private:
  // One tensor for each input; an only input keeps its shape, others are vectors.
  std::vector<at::Tensor> Parts(const at::Tensor& x) const;

  std::vector<at::ScalarType> types_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<int64_t> sizes_;
};

}  // namespace chainfleet
