// The Gauss-Newton matrix of a sum of -log likelihoods at one theta: sum_i J_i' H_i J_i, where J_i is the Jacobian of
// the model's outputs for example i and H_i their Fisher information. For class probabilities, and for normals of a
// given variance, H_i is the Hessian of -log likelihood with respect to the outputs, and the sum is the Hessian of a
// model that is linear in theta. For a mean and a log variance s, H_i is diag(exp(-s), 1/2).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/domain/sampler_spec.h"

namespace chainfleet {

// A partial sum, empty at first. Tensors are double, on the host or on theta's device. Parameters are in layout order
// without padding. Distinct threads may fill distinct sums.
struct Curvature {
  CurvatureStructure structure = CurvatureStructure::kDiagonal;
  at::Tensor diagonal;  // [D]
  at::Tensor full;      // [D, D]

  // The block of a layer's weight, with its bias as one more column, is outputs (x) inputs / positions (K-FAC: Martens
  // & Grosse, ICML 2015; for convolutions: Grosse & Martens, ICML 2016).
  struct Layer {
    int64_t weight = 0;  // its tensor in the layout; the bias follows it
    bool bias = false;
    at::Tensor inputs;  // sum of a a' over examples and positions; a: the layer's inputs, and 1 for the bias
    // sum of g g' over them and over the columns of a root of H_i; g: gradient of the layer's outputs
    at::Tensor outputs;
    double positions = 0;  // examples, times the pixels of a convolution's output
  };
  std::vector<Layer> layers;  // kKronecker
};

// sum += term; `sum` may still be empty.
void AddTo(at::Tensor* sum, const at::Tensor& term);

}  // namespace chainfleet
