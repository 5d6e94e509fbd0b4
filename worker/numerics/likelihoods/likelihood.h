// The functions of a network's outputs that a likelihood defines: losses and their gradients for sampling, and the
// predictive distribution of a draw for an example. One file per likelihood (core/domain/likelihood_spec.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/domain/likelihood_spec.h"
#include "worker/numerics/kernels/lanes.h"

namespace chainfleet {

// Up to 16 examples side by side (kernels/lanes.h), K outputs.
struct LaneExamples {
  const float* outputs = nullptr;  // [K][16]
  const float* targets = nullptr;  // [count], standardised with the units given to MakeLikelihood; labels as numbers
  int64_t count = 0;
  double log_variance = 0;  // chain's value, if the likelihood has one
};

struct LaneLosses {
  double loss[kLanes];   // -log p(target | outputs); arbitrary from `count` on
  double slope[kLanes];  // derivative with respect to the log variance, if any
};

// Immutable. Thread-safe.
class Likelihood {
 public:
  virtual ~Likelihood() = default;

  int64_t num_outputs() const { return num_outputs_; }
  int64_t num_classes() const { return num_classes_; }  // 0: float32 targets
  // True if the last parameter of the layout is the likelihood's log variance.
  bool has_log_variance() const { return has_log_variance_; }

  // Computes the losses, and delta [K][16]: `scale` times their gradient with respect to the outputs, zero from `count`
  // on. The numbers of an example depend on nothing but that example.
  virtual void Evaluate(const LaneExamples& examples, float scale, float* delta, LaneLosses* losses) const = 0;

  // The losses [C, n] in ATen operations, differentiable by autograd, for outputs [C, n, K] and targets [C, n] (int64
  // labels or float32). `log_variance` is [C, 1], undefined if the likelihood has none.
  virtual at::Tensor Losses(const at::Tensor& outputs, const at::Tensor& targets,
                            const at::Tensor& log_variance) const = 0;

  // Column `column`, [n, K], of a square root of each example's Fisher information of its outputs [n, K]. A log
  // variance counts as the last output. There are K columns.
  virtual at::Tensor FisherColumn(const at::Tensor& outputs, int64_t column) const = 0;

  // Returns the predictions of a draw for examples with outputs [n, K], in ATen operations, differentiable by autograd:
  // probabilities [n, num_classes], or means [n, 1] in the targets' units.
  virtual at::Tensor Predicted(const at::Tensor& outputs) const = 0;

  // For labels: probability [num_classes][16] from outputs [K][16].
  virtual void Probabilities(const float* outputs, float* probability) const;
  // For float32 targets, in the targets' units: mean[16] and variance[16].
  virtual void Moments(const float* outputs, double log_variance, double* mean, double* variance) const;

 protected:
  Likelihood(int64_t num_outputs, int64_t num_classes, bool has_log_variance = false)
      : num_outputs_(num_outputs), num_classes_(num_classes), has_log_variance_(has_log_variance) {}

 private:
  const int64_t num_outputs_, num_classes_;
  const bool has_log_variance_;
};

// INVALID_ARGUMENT unless both are finite and the deviation is above 0.
absl::Status CheckTargetUnits(const TargetUnits& units);

// REQUIRES: `spec` has passed Validate and `units` CheckTargetUnits. The variance of `spec` is one of the targets as
// stored; `num_classes` is that of the data set. Losses take targets that are standardised with `units`
// (ResidentDataset::TargetNumbers) and are -log densities of the targets as stored.
std::unique_ptr<const Likelihood> MakeLikelihood(const LikelihoodKind& spec, int64_t num_classes,
                                                 const TargetUnits& units);

std::unique_ptr<const Likelihood> MakeCategorical(int64_t num_classes);
std::unique_ptr<const Likelihood> MakeBernoulli();
std::unique_ptr<const Likelihood> MakeGaussian(const GaussianLikelihood& spec);
std::unique_ptr<const Likelihood> MakeHeteroscedasticGaussian(DeviationLink deviation);
std::unique_ptr<const Likelihood> MakeInTargetUnits(std::unique_ptr<const Likelihood> within, const TargetUnits& units);

}  // namespace chainfleet
