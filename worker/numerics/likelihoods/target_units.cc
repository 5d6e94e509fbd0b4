// Converts a likelihood of standardised targets to the targets' own units. If the inner likelihood has mean f and
// variance v, the outer one has mean + stddev f and stddev^2 v. Its density is the inner one's divided by stddev, so
// its loss is larger by log stddev.
#include <ATen/TensorOperators.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "worker/numerics/likelihoods/likelihood.h"

namespace chainfleet {
namespace {

class InTargetUnits final : public Likelihood {
 public:
  InTargetUnits(std::unique_ptr<const Likelihood> within, const TargetUnits& units)
      : Likelihood(within->num_outputs(), 0, within->has_log_variance()), within_(std::move(within)), units_(units) {}

  void Evaluate(const LaneExamples& examples, float scale, float* delta, LaneLosses* losses) const override {
    within_->Evaluate(examples, scale, delta, losses);
    for (int64_t l = 0; l < examples.count; ++l) losses->loss[l] += std::log(units_.stddev);
  }

  at::Tensor Losses(const at::Tensor& outputs, const at::Tensor& targets,
                    const at::Tensor& log_variance) const override {
    return within_->Losses(outputs, targets, log_variance) + std::log(units_.stddev);
  }

  at::Tensor FisherColumn(const at::Tensor& outputs, int64_t column) const override {
    return within_->FisherColumn(outputs, column);
  }

  at::Tensor Predicted(const at::Tensor& outputs) const override {
    return within_->Predicted(outputs) * units_.stddev + units_.mean;
  }

  void Moments(const float* outputs, double log_variance, double* mean, double* variance) const override {
    within_->Moments(outputs, log_variance, mean, variance);
    for (int64_t l = 0; l < kLanes; ++l) {
      mean[l] = units_.mean + units_.stddev * mean[l];
      variance[l] *= units_.stddev * units_.stddev;
    }
  }

 private:
  const std::unique_ptr<const Likelihood> within_;
  const TargetUnits units_;
};

}  // namespace

absl::Status CheckTargetUnits(const TargetUnits& units) {
  if (std::isfinite(units.mean) && std::isfinite(units.stddev) && units.stddev > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("targets of mean ", units.mean, " and deviation ", units.stddev, " cannot be standardised"));
}

std::unique_ptr<const Likelihood> MakeInTargetUnits(std::unique_ptr<const Likelihood> within,
                                                    const TargetUnits& units) {
  return std::make_unique<InTargetUnits>(std::move(within), units);
}

}  // namespace chainfleet
