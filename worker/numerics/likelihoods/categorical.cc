#include <ATen/TensorOperators.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>

#include "worker/numerics/kernels/softmax.h"
#include "worker/numerics/likelihoods/likelihood.h"

namespace chainfleet {
namespace {

// loss = log sum exp of the logits - logit of the label; derivative with respect to logit k: p_k - [k is the label]. A
// square root of diag(p) - p p' has the columns sqrt(p_k) (e_k - p).
class Categorical final : public Likelihood {
 public:
  explicit Categorical(int64_t num_classes) : Likelihood(num_classes, num_classes) {}

  void Evaluate(const LaneExamples& examples, float scale, float* delta, LaneLosses* losses) const override {
    alignas(64) float log_normaliser[kLanes];
    Softmax(examples.outputs, num_classes(), delta, log_normaliser);
    float scales[kLanes] = {};
    for (int64_t l = 0; l < examples.count; ++l) {
      const int64_t at = static_cast<int64_t>(examples.targets[l]) * kLanes + l;
      losses->loss[l] = static_cast<double>(log_normaliser[l]) - examples.outputs[at];
      delta[at] -= 1;
      scales[l] = scale;
    }
    for (int64_t k = 0; k < num_classes(); ++k) {
      for (int64_t l = 0; l < kLanes; ++l) delta[k * kLanes + l] *= scales[l];
    }
  }

  at::Tensor Losses(const at::Tensor& outputs, const at::Tensor& targets, const at::Tensor&) const override {
    return -at::log_softmax(outputs, -1).gather(-1, targets.unsqueeze(-1)).squeeze(-1);
  }

  at::Tensor Predicted(const at::Tensor& outputs) const override { return outputs.softmax(1); }

  at::Tensor FisherColumn(const at::Tensor& outputs, int64_t column) const override {
    const at::Tensor p = at::softmax(outputs, -1);
    at::Tensor values = -p;
    values.select(1, column).add_(1);
    return values * p.select(1, column).sqrt().unsqueeze(1);
  }

  void Probabilities(const float* outputs, float* probability) const override {
    alignas(64) float log_normaliser[kLanes];
    Softmax(outputs, num_classes(), probability, log_normaliser);
  }
};

}  // namespace

std::unique_ptr<const Likelihood> MakeCategorical(int64_t num_classes) {
  return std::make_unique<Categorical>(num_classes);
}

}  // namespace chainfleet
