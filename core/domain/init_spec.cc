#include "core/domain/init_spec.h"

#include "absl/strings/str_cat.h"

namespace chainfleet {

int64_t NumStartPoints(const InitSpec& init, int64_t num_parameters) {
  if (!init.weights.empty()) return static_cast<int64_t>(init.weights.size());
  const auto size = static_cast<int64_t>(init.theta.size());
  return size > 1 && num_parameters > 0 ? size / num_parameters : 0;
}

std::vector<FieldViolation> ValidateForSize(const InitSpec& init, int64_t num_parameters) {
  const auto size = static_cast<int64_t>(init.theta.size());
  if (size <= 1 || (num_parameters > 0 && size % num_parameters == 0)) return {};
  return {{"init.theta", absl::StrCat("has ", size, " numbers; the model has ", num_parameters,
                                      " parameters: give 1 number, ", num_parameters, ", or a multiple")}};
}

std::vector<FieldViolation> ValidateWeights(const std::vector<StoredModel>& weights,
                                            const std::vector<ParameterShape>& parameters) {
  std::vector<FieldViolation> violations;
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string why = WhyNoStart(weights[i].signature->parameters, parameters);
    if (!why.empty()) {
      violations.push_back({absl::StrCat("init.weights[", i, "]"), absl::StrCat(weights[i].name, " ", why)});
    }
  }
  return violations;
}

}  // namespace chainfleet
