#include "core/domain/likelihood_spec.h"

#include "absl/strings/str_cat.h"

namespace chainfleet {

int64_t NumOutputs(const LikelihoodKind& likelihood, int64_t num_classes) {
  if (std::holds_alternative<CategoricalLikelihood>(likelihood)) return num_classes;
  return std::holds_alternative<HeteroscedasticGaussianLikelihood>(likelihood) ? 2 : 1;
}

std::vector<ParameterShape> ParametersOf(const LikelihoodKind& likelihood) {
  const auto* gaussian = std::get_if<GaussianLikelihood>(&likelihood);
  if (gaussian == nullptr || !gaussian->learned) return {};
  return {{"likelihood.log_variance", {1}}};
}

std::vector<FieldViolation> Validate(const LikelihoodKind& likelihood) {
  std::vector<FieldViolation> violations;
  std::visit([&](const auto& spec) { CheckBounds(spec, std::string("likelihood.") + spec.kName, &violations); },
             likelihood);
  const auto* gaussian = std::get_if<GaussianLikelihood>(&likelihood);
  if (gaussian != nullptr && gaussian->variance.has_value() == gaussian->learned) {
    violations.push_back({"likelihood.gaussian", "give exactly one of variance: V (of the targets) and learned: true"});
  }
  return violations;
}

std::vector<FieldViolation> ValidateTargets(const LikelihoodKind& likelihood, bool given, const Dataset& dataset) {
  const bool numbers = std::holds_alternative<Numbers>(dataset.targets);
  const bool gaussian = std::holds_alternative<GaussianLikelihood>(likelihood) ||
                        std::holds_alternative<HeteroscedasticGaussianLikelihood>(likelihood);
  const std::string path =
      std::visit([](const auto& spec) { return std::string("likelihood.") + spec.kName; }, likelihood);
  if (numbers && !given) {
    return {{"likelihood", absl::StrCat("missing: data set ", dataset.name,
                                        " has float32 targets; give gaussian: {variance: V}, gaussian: {learned: true} "
                                        "or heteroscedastic_gaussian: {}")}};
  }
  if (numbers && !gaussian) {
    return {{path, absl::StrCat("learns classes, data set ", dataset.name,
                                " has float32 targets: put it with --target-type label")}};
  }
  if (!numbers && gaussian) {
    return {{path, absl::StrCat("learns numbers, data set ", dataset.name, " has labels of ",
                                NumClasses(dataset.targets), " classes: put it with --target-type float32")}};
  }
  if (std::holds_alternative<BernoulliLikelihood>(likelihood) && dataset.targets != Targets(Classes{2})) {
    return {{path, absl::StrCat("is for two classes, data set ", dataset.name, " has ", NumClasses(dataset.targets))}};
  }
  return {};
}

}  // namespace chainfleet
