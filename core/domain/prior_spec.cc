#include "core/domain/prior_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace chainfleet {

std::vector<FieldViolation> Validate(const PriorSpec& prior) {
  std::vector<FieldViolation> violations;
  std::visit([&](const auto& p) { CheckBounds(p, std::string("prior.") + p.kName, &violations); }, prior.kind);
  return violations;
}

std::vector<FieldViolation> ValidateForLayers(const PriorSpec& prior, const std::vector<ParameterShape>& parameters) {
  const auto* gaussian = std::get_if<GaussianPrior>(&prior.kind);
  if (gaussian == nullptr || gaussian->layers.empty()) return {};
  std::vector<std::string> layers;
  for (const ParameterShape& parameter : parameters) {
    const std::string layer = LayerOf(parameter.name);
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  std::vector<FieldViolation> violations;
  for (const auto& [name, precision] : gaussian->layers) {
    if (std::find(layers.begin(), layers.end(), name) != layers.end()) continue;
    violations.push_back({absl::StrCat("prior.gaussian.layers.", name),
                          absl::StrCat("the model has no such layer; it has ", absl::StrJoin(layers, ", "))});
  }
  return violations;
}

std::string LayerOf(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

}  // namespace chainfleet
