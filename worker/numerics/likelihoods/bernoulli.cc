#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/likelihoods/scalar_losses.h"

namespace chainfleet {
namespace {

// loss = log(1 + exp(z)) - z y for the logit z; derivative with respect to z: p - y, p = P(label = 1).
class Bernoulli final : public Likelihood {
 public:
  Bernoulli() : Likelihood(1, 2) {}

  void Evaluate(const LaneExamples& examples, float scale, float* delta, LaneLosses* losses) const override {
    std::fill_n(delta, kLanes, 0.0f);
    for (int64_t l = 0; l < examples.count; ++l) {
      double slope;
      losses->loss[l] = LogisticLoss().Loss(examples.outputs[l], examples.targets[l], &slope);
      delta[l] = scale * static_cast<float>(slope);
    }
  }

  at::Tensor Losses(const at::Tensor& outputs, const at::Tensor& targets, const at::Tensor&) const override {
    at::Tensor slope;
    return LogisticLoss().Loss(outputs.squeeze(-1), targets, &slope);
  }

  at::Tensor FisherColumn(const at::Tensor& outputs, int64_t) const override {
    return LogisticLoss().Curvature(outputs).sqrt();
  }

  at::Tensor Predicted(const at::Tensor& outputs) const override {
    return at::cat({(-outputs).sigmoid(), outputs.sigmoid()}, 1);
  }

  void Probabilities(const float* outputs, float* probability) const override {
    for (int64_t l = 0; l < kLanes; ++l) {
      const double logit = outputs[l];
      // Not one minus the other, which would be 0 from a logit of 37 on.
      probability[l] = static_cast<float>(1 / (1 + std::exp(logit)));
      probability[kLanes + l] = static_cast<float>(1 / (1 + std::exp(-logit)));
    }
  }
};

}  // namespace

std::unique_ptr<const Likelihood> MakeBernoulli() { return std::make_unique<Bernoulli>(); }

}  // namespace chainfleet
