#include "core/domain/prior_spec.h"

#include <algorithm>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/content_limits.h"
#include "core/base/limits.h"

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
  std::unordered_set<std::string> known;
  for (const ParameterShape& parameter : parameters) {
    const std::string layer = LayerOf(parameter.name);
    if (known.insert(layer).second) layers.push_back(layer);
  }
  constexpr size_t kListed = 64;
  const auto end_of_list = layers.begin() + static_cast<int64_t>(std::min(kListed, layers.size()));
  const std::string list =
      absl::StrCat(absl::StrJoin(layers.begin(), end_of_list, ", "),
                   layers.size() > kListed ? absl::StrCat(" and ", layers.size() - kListed, " more") : "");
  std::vector<FieldViolation> violations;
  for (const auto& [name, precision] : gaussian->layers) {
    if (known.contains(name)) continue;
    if (violations.size() > limits::kMaxViolations) break;
    violations.push_back(
        {absl::StrCat("prior.gaussian.layers.", name), absl::StrCat("the model has no such layer; it has ", list)});
  }
  return violations;
}

std::string LayerOf(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

}  // namespace chainfleet
