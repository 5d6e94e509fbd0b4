#include <ATen/TensorOperators.h>

#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/likelihoods/scalar_losses.h"

namespace chainfleet {
namespace {

// As gaussian.cc, but log v is the second output (Nix & Weigend, 1994).
class HeteroscedasticGaussian final : public Likelihood {
 public:
  HeteroscedasticGaussian() : Likelihood(2, 0) {}

  void Evaluate(const LaneExamples& examples, float scale, float* delta, LaneLosses* losses) const override {
    std::fill_n(delta, 2 * kLanes, 0.0f);
    for (int64_t l = 0; l < examples.count; ++l) {
      const double mean = examples.outputs[l], target = examples.targets[l];
      double slope;
      losses->loss[l] =
          NormalLoss{std::exp(static_cast<double>(examples.outputs[kLanes + l]))}.Loss(mean, target, &slope);
      delta[l] = scale * static_cast<float>(slope);
      delta[kLanes + l] = scale * static_cast<float>((1 - slope * (mean - target)) / 2);
    }
  }

  at::Tensor Losses(const at::Tensor& outputs, const at::Tensor& targets, const at::Tensor&) const override {
    return NormalLosses(outputs.select(-1, 0) - targets, outputs.select(-1, 1));
  }

  at::Tensor Predicted(const at::Tensor& outputs) const override { return outputs.narrow(1, 0, 1); }

  at::Tensor FisherColumn(const at::Tensor& outputs, int64_t column) const override {
    return NormalFisherColumn(outputs, column);
  }

  void Moments(const float* outputs, double, double* mean, double* variance) const override {
    std::copy_n(outputs, kLanes, mean);
    for (int64_t l = 0; l < kLanes; ++l) variance[l] = std::exp(static_cast<double>(outputs[kLanes + l]));
  }
};

}  // namespace

std::unique_ptr<const Likelihood> MakeHeteroscedasticGaussian() { return std::make_unique<HeteroscedasticGaussian>(); }

}  // namespace chainfleet
