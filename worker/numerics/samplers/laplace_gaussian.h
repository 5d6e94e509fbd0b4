// The Gaussian of a Laplace approximation, by the factors of its precision matrix, curvature + prior.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "worker/numerics/arena/layout.h"
#include "worker/numerics/potentials/curvature.h"

namespace chainfleet {

// Immutable. Thread-safe. Factors are double, on the given device.
//
//   diagonal    1 / sqrt(h + lambda) for each parameter
//   full        L of the Cholesky factorisation L L' = H + diag(lambda)
//   Kronecker   for each layer A = U diag(a) U' (inputs), G = V diag(g) V' (outputs): eigenvalues
//               g_i a_j / positions + lambda of the block, with eigenvectors v_i u_j'
class LaplaceGaussian {
 public:
  // `lambda` is the prior's precision of each parameter tensor of `layout`. nullopt if the matrix is not finite or not
  // positive definite.
  static std::optional<LaplaceGaussian> Factor(const Curvature& curvature, const std::vector<double>& lambda,
                                               const Layout& layout, const at::Device& device);

  double LogDeterminant() const { return log_determinant_; }  // for the precision matrix

  // Converts standard normals in `tensors[k]` [shape of tensor k...] (float) to a draw of N(0, precision^-1).
  void Shape(const std::vector<at::Tensor>& tensors) const;

 private:
  struct Block {
    int64_t weight = 0;
    bool bias = false;
    at::Tensor inputs, outputs;  // eigenvectors U and V, in columns
    at::Tensor deviation;        // [outputs, inputs], 1 / sqrt(eigenvalue)
  };
  bool AddBlock(const Curvature::Layer& layer, double lambda, const at::Device& device);

  at::Tensor deviation_;  // [D], kDiagonal
  at::Tensor factor_;     // [D, D], L', kFull
  std::vector<Block> blocks_;
  double log_determinant_ = 0;
};

}  // namespace chainfleet
