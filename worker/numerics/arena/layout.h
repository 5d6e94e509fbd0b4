// The positions of one chain's parameters in a row of a ThetaArena.
//
// There are two positions. p counts parameters in layout order without padding; it addresses random numbers, draws and
// resume points. The padded position addresses the row, in which every tensor starts on 64 bytes. Padding is never a
// parameter and stays zero.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/model_spec.h"
#include "worker/numerics/tensors/tensor_span.h"

namespace chainfleet {

// Immutable. Thread-safe.
class Layout {
 public:
  static constexpr int64_t kAlignmentBytes = 64;

  // `parameters` in layout order, gapless, as InferParameters gives them.
  explicit Layout(std::vector<ParameterShape> parameters);

  const std::vector<ParameterShape>& parameters() const { return parameters_; }
  const std::vector<TensorSpan>& spans() const { return spans_; }  // one per parameter tensor, same order
  int64_t num_parameters() const { return num_parameters_; }       // D, without padding
  int64_t row_stride() const { return row_stride_; }               // floats of a row, with padding

  // Copies D parameters from a padded row on the host into `flat`, and back. Unpack leaves padding unchanged.
  void Pack(const float* row, float* flat) const;
  void Unpack(const float* flat, float* row) const;

 private:
  std::vector<ParameterShape> parameters_;
  std::vector<TensorSpan> spans_;
  int64_t num_parameters_ = 0;
  int64_t row_stride_ = 0;
};

}  // namespace chainfleet
