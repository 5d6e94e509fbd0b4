// The likelihood p(target | outputs) of an example's target, given a network's outputs.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/domain/fields.h"
#include "core/domain/parameter_shape.h"

namespace chainfleet {

// Softmax of one output per class; labels.
struct CategoricalLikelihood {
  static constexpr char kName[] = "categorical";
  static void Fields(auto&, auto&&) {}
  bool operator==(const CategoricalLikelihood&) const = default;
};

// N(output, variance) of a float32 target. The variance is given, or `learned`: its logarithm is a parameter more,
// likelihood.log_variance, that starts at 0 and has the job's prior (`layers: {likelihood: ...}` for one of its own).
struct GaussianLikelihood {
  static constexpr char kName[] = "gaussian";
  std::optional<double> variance;
  bool learned = false;
  static void Fields(auto& self, auto&& visit) {
    visit("variance", self.variance, Above(0));
    visit("learned", self.learned);
  }
  bool operator==(const GaussianLikelihood&) const = default;
};

// N(output 0, exp(output 1)) of a float32 target.
struct HeteroscedasticGaussianLikelihood {
  static constexpr char kName[] = "heteroscedastic_gaussian";
  static void Fields(auto&, auto&&) {}
  bool operator==(const HeteroscedasticGaussianLikelihood&) const = default;
};

// P(label = 1) = 1 / (1 + exp(-output)); labels of two classes.
struct BernoulliLikelihood {
  static constexpr char kName[] = "bernoulli";
  static void Fields(auto&, auto&&) {}
  bool operator==(const BernoulliLikelihood&) const = default;
};

using LikelihoodKind =
    std::variant<CategoricalLikelihood, GaussianLikelihood, HeteroscedasticGaussianLikelihood, BernoulliLikelihood>;

// The number of outputs that a network needs for this likelihood.
int64_t NumOutputs(const LikelihoodKind& likelihood, int64_t num_classes);

// The parameters that a likelihood adds to the network's; offsets start at 0.
std::vector<ParameterShape> ParametersOf(const LikelihoodKind& likelihood);

// Paths below "likelihood".
std::vector<FieldViolation> Validate(const LikelihoodKind& likelihood);

// Float32 targets for the Gaussians, labels for the others, of two classes for bernoulli. `given`: the job names it.
std::vector<FieldViolation> ValidateTargets(const LikelihoodKind& likelihood, bool given, const Dataset& dataset);

}  // namespace chainfleet
