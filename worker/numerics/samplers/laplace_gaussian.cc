#include "worker/numerics/samplers/laplace_gaussian.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/outer.h>

namespace chainfleet {
namespace {

bool IsFinite(const at::Tensor& t) { return t.isfinite().all().item<bool>(); }

double SumOfLogs(const at::Tensor& t) { return t.log().sum().item<double>(); }

// lambda of each parameter, [D].
at::Tensor Spread(const std::vector<double>& lambda, const Layout& layout, const at::Device& device) {
  std::vector<at::Tensor> of_tensor;
  for (size_t k = 0; k < lambda.size(); ++k) {
    of_tensor.push_back(at::full({layout.spans()[k].size}, lambda[k], at::dtype(at::kDouble).device(device)));
  }
  return at::cat(of_tensor);
}

// Concatenates all tensors to one [D] in double.
at::Tensor Flat(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.flatten().to(at::kDouble));
  return at::cat(flat);
}

void Unflatten(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  int64_t first = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(flat.narrow(0, first, tensor.numel()).view(tensor.sizes()));
    first += tensor.numel();
  }
}

}  // namespace

std::optional<LaplaceGaussian> LaplaceGaussian::Factor(const Curvature& curvature, const std::vector<double>& lambda,
                                                       const Layout& layout, const at::Device& device) {
  LaplaceGaussian gaussian;
  if (curvature.structure == CurvatureStructure::kKronecker) {
    for (const Curvature::Layer& layer : curvature.layers) {
      if (!gaussian.AddBlock(layer, lambda[layer.weight], device)) return std::nullopt;
    }
    return gaussian;
  }
  if (curvature.structure == CurvatureStructure::kDiagonal) {
    const at::Tensor precision = curvature.diagonal.to(device) + Spread(lambda, layout, device);
    gaussian.deviation_ = precision.rsqrt();
    if (!IsFinite(gaussian.deviation_)) return std::nullopt;
    gaussian.log_determinant_ = -2 * SumOfLogs(gaussian.deviation_);
    return gaussian;
  }
  const at::Tensor precision = curvature.full.to(device) + Spread(lambda, layout, device).diag();
  if (!IsFinite(precision)) return std::nullopt;
  const auto [factor, failed] = at::linalg_cholesky_ex(precision);
  if (failed.item<int>() != 0) return std::nullopt;
  gaussian.factor_ = factor.t();
  gaussian.log_determinant_ = 2 * SumOfLogs(factor.diagonal());
  return gaussian;
}

bool LaplaceGaussian::AddBlock(const Curvature::Layer& layer, double lambda, const at::Device& device) {
  if (!IsFinite(layer.inputs) || !IsFinite(layer.outputs)) return false;
  const auto [a, u] = at::linalg_eigh(layer.inputs.to(device));
  const auto [g, v] = at::linalg_eigh(layer.outputs.to(device));
  // Rounding may make eigenvalues of these semi-definite matrices negative.
  const at::Tensor eigenvalues = at::outer(g.clamp_min(0), a.clamp_min(0)) / layer.positions + lambda;
  blocks_.push_back({layer.weight, layer.bias, u, v, eigenvalues.rsqrt()});
  log_determinant_ -= 2 * SumOfLogs(blocks_.back().deviation);
  return IsFinite(blocks_.back().deviation);
}

void LaplaceGaussian::Shape(const std::vector<at::Tensor>& tensors) const {
  if (deviation_.defined()) return Unflatten(Flat(tensors) * deviation_, tensors);
  if (factor_.defined()) {
    const at::Tensor z = Flat(tensors).unsqueeze(1);
    return Unflatten(at::linalg_solve_triangular(factor_, z, /*upper=*/true).squeeze(1), tensors);
  }
  for (const Block& block : blocks_) {
    const at::Tensor& weight = tensors[block.weight];
    at::Tensor z = weight.flatten(1).to(at::kDouble);
    if (block.bias) z = at::cat({z, tensors[block.weight + 1].unsqueeze(1).to(at::kDouble)}, 1);
    // Use the symmetric root: the draw then does not depend on the signs and bases that the decompositions chose.
    const at::Tensor turned = block.outputs.t().matmul(z).matmul(block.inputs) * block.deviation;
    const at::Tensor draw = block.outputs.matmul(turned).matmul(block.inputs.t());
    const int64_t inputs = weight.numel() / weight.size(0);
    weight.copy_(draw.narrow(1, 0, inputs).reshape(weight.sizes()));
    if (block.bias) tensors[block.weight + 1].copy_(draw.select(1, inputs));
  }
}

}  // namespace chainfleet
