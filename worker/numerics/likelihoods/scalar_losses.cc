#include "worker/numerics/likelihoods/scalar_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/zeros_like.h>

namespace chainfleet {

at::Tensor NormalLoss::Loss(const at::Tensor& prediction, const at::Tensor& target, at::Tensor* slope) const {
  const at::Tensor gap = prediction - target;
  *slope = gap / variance;
  return (gap.square() / variance + log_normaliser) / 2;
}

at::Tensor NormalLoss::Curvature(const at::Tensor& prediction) const { return at::full_like(prediction, 1 / variance); }

at::Tensor NormalLosses(const at::Tensor& gap, const at::Tensor& log_variance) {
  return (gap.square() * at::exp(-log_variance) + log_variance + std::log(2 * std::numbers::pi)) / 2;
}

at::Tensor NormalFisherColumn(const at::Tensor& outputs, int64_t column) {
  at::Tensor values = at::zeros_like(outputs);
  if (column == 0) {
    values.select(1, 0).copy_(at::exp(outputs.select(1, 1) / -2));
  } else {
    values.select(1, 1).fill_(std::sqrt(0.5));
  }
  return values;
}

at::Tensor LogisticLoss::Loss(const at::Tensor& prediction, const at::Tensor& target, at::Tensor* slope) const {
  *slope = at::sigmoid(prediction) - target;
  return at::softplus(prediction) - prediction * target;
}

at::Tensor LogisticLoss::Curvature(const at::Tensor& prediction) const {
  return at::sigmoid(prediction) * at::sigmoid(-prediction);
}

}  // namespace chainfleet
