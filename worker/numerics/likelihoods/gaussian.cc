#include <ATen/TensorOperators.h>

#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/likelihoods/scalar_losses.h"

namespace chainfleet {
namespace {

// loss = ((f - y)^2 / v + log(2 pi v)) / 2 for the output f; d/df: (f - y) / v; d/d(log v): (1 - (f - y)^2 / v) / 2.
class Gaussian final : public Likelihood {
 public:
  explicit Gaussian(const GaussianLikelihood& spec)
      : Likelihood(1, 0, spec.learned), variance_(spec.variance.value_or(1)) {}

  void Evaluate(const LaneExamples& examples, float scale, float* delta, LaneLosses* losses) const override {
    const NormalLoss normal{VarianceOf(examples.log_variance)};
    std::fill_n(delta, kLanes, 0.0f);
    for (int64_t l = 0; l < examples.count; ++l) {
      double slope;
      losses->loss[l] = normal.Loss(examples.outputs[l], examples.targets[l], &slope);
      losses->slope[l] = (1 - slope * (static_cast<double>(examples.outputs[l]) - examples.targets[l])) / 2;
      delta[l] = scale * static_cast<float>(slope);
    }
  }

  at::Tensor Losses(const at::Tensor& outputs, const at::Tensor& targets,
                    const at::Tensor& log_variance) const override {
    if (has_log_variance()) return NormalLosses(outputs.squeeze(-1) - targets, log_variance);
    at::Tensor slope;
    return NormalLoss{variance_}.Loss(outputs.squeeze(-1), targets, &slope);
  }

  at::Tensor Predicted(const at::Tensor& outputs) const override { return outputs.narrow(1, 0, 1); }

  at::Tensor FisherColumn(const at::Tensor& outputs, int64_t column) const override {
    if (has_log_variance()) return NormalFisherColumn(outputs, column);
    return NormalLoss{variance_}.Curvature(outputs).sqrt();
  }

  void Moments(const float* outputs, double log_variance, double* mean, double* variance) const override {
    std::copy_n(outputs, kLanes, mean);
    std::fill_n(variance, kLanes, VarianceOf(log_variance));
  }

 private:
  double VarianceOf(double log_variance) const { return has_log_variance() ? std::exp(log_variance) : variance_; }

  const double variance_;
};

}  // namespace

std::unique_ptr<const Likelihood> MakeGaussian(const GaussianLikelihood& spec) {
  return std::make_unique<Gaussian>(spec);
}

}  // namespace chainfleet
