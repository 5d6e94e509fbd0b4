#include "worker/numerics/likelihoods/scalar_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>

namespace chainfleet {

at::Tensor NormalLoss::Loss(const at::Tensor& prediction, const at::Tensor& target, at::Tensor* slope) const {
  const at::Tensor gap = prediction - target;
  *slope = gap / variance;
  return (gap.square() / variance + std::log(2 * std::numbers::pi * variance)) / 2;
}

at::Tensor NormalLosses(const at::Tensor& gap, const at::Tensor& log_variance) {
  return (gap.square() * at::exp(-log_variance) + log_variance + std::log(2 * std::numbers::pi)) / 2;
}

at::Tensor LogisticLoss::Loss(const at::Tensor& prediction, const at::Tensor& target, at::Tensor* slope) const {
  *slope = at::sigmoid(prediction) - target;
  return at::softplus(prediction) - prediction * target;
}

}  // namespace chainfleet
