// What a network computes, without its parameters: convolutions with ReLU and 2x2 max pool, then dense layers with ReLU
// between them, then a softmax over classes. One file per model; the fused CPU path and the ATen path both execute it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/domain/model_spec.h"
#include "worker/numerics/kernels/conv.h"
#include "worker/numerics/kernels/dense.h"

namespace chainfleet {

// Layer l, counted through both lists, has the parameter tensors 2 l (weight) and 2 l + 1 (bias) of the layout.
struct Architecture {
  std::vector<int64_t> input_shape;     // of one example: [channels, height, width], or any for dense networks
  int64_t padding = 0;                  // zeros around the image, in pixels: the first convolution's
  std::vector<ConvShape> convolutions;  // the first one's input is padded
  std::vector<DenseShape> dense;        // at least one; the last one's outputs are the logits
  int64_t input_size() const;           // values of one example
  int64_t num_classes() const { return dense.back().outputs; }
};

// The network of `model`. INVALID_ARGUMENT as InferParameters; INTERNAL if its parameters are not those of the layers.
absl::StatusOr<Architecture> MakeArchitecture(const ModelSpec& model, const std::vector<int64_t>& input_shape,
                                              int64_t num_classes);

// The built-in models, for shapes that InferParameters accepts.
Architecture SoftmaxRegression(const std::vector<int64_t>& input_shape, int64_t num_classes);
Architecture Mlp(const std::vector<int64_t>& input_shape, int64_t num_classes, const std::vector<int64_t>& hidden);
Architecture Lenet5(const std::vector<int64_t>& input_shape, int64_t num_classes);

}  // namespace chainfleet
