// -log p(target | prediction) of one number, and its derivatives, for networks with one output and for the analytic
// regressions. For doubles, and for tensors of one shape on any device.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace chainfleet {

// -log density of a target that is `unit` times a variable with distribution N(prediction, variance).
struct NormalLoss {
  double variance;
  double unit = 1;
  // Kept, because a logarithm costs as much as the rest of a loss.
  double log_normaliser = std::log(2 * std::numbers::pi * variance * unit * unit);
  // `slope`: derivative with respect to the prediction. With respect to log variance: (1 - slope (prediction - target))
  // / 2.
  double Loss(double prediction, double target, double* slope) const {
    const double gap = prediction - target;
    *slope = gap / variance;
    return (gap * gap / variance + log_normaliser) / 2;
  }
  at::Tensor Loss(const at::Tensor& prediction, const at::Tensor& target, at::Tensor* slope) const;
  at::Tensor Curvature(const at::Tensor& prediction) const;  // second derivative, the same for every target
};

// The loss of N(prediction, exp(log_variance)), gap = prediction - target. Differentiable by autograd in both.
at::Tensor NormalLosses(const at::Tensor& gap, const at::Tensor& log_variance);

// Column 0 or 1, [n, 2], of a square root of the Fisher information diag(1/v, 1/2) of means and log variances [n, 2].
at::Tensor NormalFisherColumn(const at::Tensor& outputs, int64_t column);

// The loss of a logit; targets are 0 or 1.
struct LogisticLoss {
  double Loss(double prediction, double target, double* slope) const {
    *slope = 1 / (1 + std::exp(-prediction)) - target;
    return std::max(prediction, 0.0) + std::log1p(std::exp(-std::abs(prediction))) - prediction * target;
  }
  at::Tensor Loss(const at::Tensor& prediction, const at::Tensor& target, at::Tensor* slope) const;
  at::Tensor Curvature(const at::Tensor& prediction) const;  // second derivative, the same for every target
};

}  // namespace chainfleet
