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

// Labels: softmax of one output per class.
struct CategoricalLikelihood {
  static constexpr char kName[] = "categorical";
  static void Fields(auto&, auto&&) {}
  bool operator==(const CategoricalLikelihood&) const = default;
};

// Float32 targets: N(output, variance). The variance is given or `learned`: its logarithm is then the parameter
// likelihood.log_variance, which starts at 0 and has the job's prior (`layers: {likelihood: ...}` overrides it).
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

// How the standard deviation follows from an output f: exp(f / 2), or log(1 + exp(f)) + kLeastDeviation.
enum class DeviationLink { kExponential, kSoftplus };
inline std::initializer_list<const char*> EnumNames(DeviationLink) {
  static constexpr std::initializer_list<const char*> kNames = {"exponential", "softplus"};
  return kNames;
}

// Float32 targets: N(output 0, deviation(output 1)^2).
struct HeteroscedasticGaussianLikelihood {
  static constexpr char kName[] = "heteroscedastic_gaussian";
  static constexpr double kLeastDeviation = 1e-6;
  DeviationLink deviation = DeviationLink::kExponential;
  static void Fields(auto& self, auto&& visit) { visit("deviation", self.deviation); }
  bool operator==(const HeteroscedasticGaussianLikelihood&) const = default;
};

// Labels of two classes: P(label = 1) = 1 / (1 + exp(-output)).
struct BernoulliLikelihood {
  static constexpr char kName[] = "bernoulli";
  static void Fields(auto&, auto&&) {}
  bool operator==(const BernoulliLikelihood&) const = default;
};

using LikelihoodKind =
    std::variant<CategoricalLikelihood, GaussianLikelihood, HeteroscedasticGaussianLikelihood, BernoulliLikelihood>;

// Returns the number of outputs that a network needs for this likelihood.
int64_t NumOutputs(const LikelihoodKind& likelihood, int64_t num_classes);

// Returns the parameters that a likelihood adds to the network's; offsets start at 0.
std::vector<ParameterShape> ParametersOf(const LikelihoodKind& likelihood);

// Returns violations with paths below "likelihood".
std::vector<FieldViolation> Validate(const LikelihoodKind& likelihood);

// Gaussians need float32 targets, the others labels; bernoulli needs two classes. `given`: the job sets the likelihood.
std::vector<FieldViolation> ValidateTargets(const LikelihoodKind& likelihood, bool given, const Dataset& dataset);

}  // namespace chainfleet
