#include <ATen/TensorOperators.h>
#include <ATen/ops/log.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>

#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/likelihoods/scalar_losses.h"

namespace chainfleet {
namespace {

// As gaussian.cc, but the second output f gives v: log v = f (Nix & Weigend, 1994), or log v = 2 log(softplus(f) + c).
class HeteroscedasticGaussian final : public Likelihood {
 public:
  explicit HeteroscedasticGaussian(DeviationLink deviation)
      : Likelihood(2, 0), is_softplus_(deviation == DeviationLink::kSoftplus) {}

  void Evaluate(const LaneExamples& examples, float scale, float* delta, LaneLosses* losses) const override {
    std::fill_n(delta, 2 * kLanes, 0.0f);
    for (int64_t l = 0; l < examples.count; ++l) {
      const double mean = examples.outputs[l], target = examples.targets[l];
      const Variance variance = VarianceOf(examples.outputs[kLanes + l]);
      double slope;
      losses->loss[l] = NormalLoss{variance.value}.Loss(mean, target, &slope);
      delta[l] = scale * static_cast<float>(slope);
      delta[kLanes + l] = scale * static_cast<float>((1 - slope * (mean - target)) / 2 * variance.slope_of_log);
    }
  }

  at::Tensor Losses(const at::Tensor& outputs, const at::Tensor& targets, const at::Tensor&) const override {
    return NormalLosses(outputs.select(-1, 0) - targets, LogVariancesOf(outputs.select(-1, 1)));
  }

  at::Tensor Predicted(const at::Tensor& outputs) const override { return outputs.narrow(1, 0, 1); }

  at::Tensor FisherColumn(const at::Tensor& outputs, int64_t column) const override {
    if (!is_softplus_) return NormalFisherColumn(outputs, column);
    const at::Tensor f = outputs.select(1, 1);
    at::Tensor values = NormalFisherColumn(at::stack({outputs.select(1, 0), LogVariancesOf(f)}, 1), column);
    if (column == 1) values.select(1, 1).mul_(2 * at::sigmoid(f) / (at::softplus(f) + kLeast));
    return values;
  }

  void Moments(const float* outputs, double, double* mean, double* variance) const override {
    std::copy_n(outputs, kLanes, mean);
    for (int64_t l = 0; l < kLanes; ++l) variance[l] = VarianceOf(outputs[kLanes + l]).value;
  }

 private:
  static constexpr double kLeast = HeteroscedasticGaussianLikelihood::kLeastDeviation;

  struct Variance {
    double value, slope_of_log;  // slope_of_log: derivative of log v by the output
  };

  Variance VarianceOf(double output) const {
    if (!is_softplus_) return {std::exp(output), 1};
    const double small = std::exp(-std::abs(output)), deviation = std::max(output, 0.0) + std::log1p(small) + kLeast;
    const double sigmoid = (output > 0 ? 1 : small) / (1 + small);
    return {deviation * deviation, 2 * sigmoid / deviation};
  }

  at::Tensor LogVariancesOf(const at::Tensor& outputs) const {
    return is_softplus_ ? 2 * at::log(at::softplus(outputs) + kLeast) : outputs;
  }

  const bool is_softplus_;
};

}  // namespace

std::unique_ptr<const Likelihood> MakeHeteroscedasticGaussian(DeviationLink deviation) {
  return std::make_unique<HeteroscedasticGaussian>(deviation);
}

}  // namespace chainfleet
