// The Gauss-Newton matrix of a sum of -log likelihoods at one theta: sum_i J_i' H_i J_i, J_i the Jacobian of the
// model's outputs for example i, H_i their Fisher information. For class probabilities, and normals of a given
// variance, H_i is the Hessian of -log likelihood by the outputs, and the sum that of a model that is linear in theta;
// of a mean and a log variance s it is diag(exp(-s), 1/2).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/domain/sampler_spec.h"

namespace chainfleet {

// A sum as it grows, empty at first. Tensors are double and lie on the host or on theta's device; parameters come in
// layout order without padding. Distinct sums may be filled by distinct threads.
struct Curvature {
  CurvatureStructure structure = CurvatureStructure::kDiagonal;
  at::Tensor diagonal;  // [D]
  at::Tensor full;      // [D, D]

  // The block of a layer's weight, its bias as a further column, is outputs (x) inputs / positions (K-FAC: Martens &
  // Grosse, ICML 2015; of convolutions: Grosse & Martens, ICML 2016).
  struct Layer {
    int64_t weight = 0;  // its tensor in the layout; the bias follows it
    bool bias = false;
    at::Tensor inputs;     // sum of a a' over examples and positions, a the inputs of the layer and 1 for the bias
    at::Tensor outputs;    // sum of g g' over them and the columns of a root of H_i, g its gradient by the outputs
    double positions = 0;  // examples, times the pixels of a convolution's output
  };
  std::vector<Layer> layers;  // kKronecker
};

// sum += term, which may be the first one.
void AddTo(at::Tensor* sum, const at::Tensor& term);

}  // namespace chainfleet
