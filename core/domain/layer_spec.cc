#include "core/domain/layer_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

using Violations = std::vector<FieldViolation>;

void ValidateList(const LayerList& layers, const std::string& path, int depth, int64_t* count, Violations* violations) {
  if (depth > limits::kMaxLayerDepth) {
    violations->push_back(
        {path, absl::StrCat("lists of layers may be nested at most ", limits::kMaxLayerDepth, " deep")});
    return;
  }
  *count += static_cast<int64_t>(layers.size());
  if (*count > limits::kMaxLayers) return;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string at = absl::StrCat(path, "[", i, "].", NameOf(layers[i].kind));
    std::visit([&](const auto& layer) { CheckBounds(layer, at, violations); }, layers[i].kind);
    ForEachList(layers[i], [&](const char* name, const LayerList& list) {
      if (list.empty() && std::string(name) == "branch") violations->push_back({at + ".branch", "has no layer"});
      ValidateList(list, at + "." + name, depth + 1, count, violations);
    });
  }
}

}  // namespace

bool ResidualLayer::operator==(const ResidualLayer& other) const {
  return branch == other.branch && shortcut == other.shortcut;
}

bool ConcatLayer::operator==(const ConcatLayer& other) const { return branch == other.branch; }

std::string NameOf(const LayerKind& kind) {
  return std::visit([](const auto& layer) { return std::string(layer.kName); }, kind);
}

bool HasBatchNorm(const LayerList& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const LayerSpec& layer) {
    bool found = std::holds_alternative<BatchNormLayer>(layer.kind);
    ForEachList(layer, [&found](const char*, const LayerList& list) { found |= HasBatchNorm(list); });
    return found;
  });
}

bool TakesIndices(const LayerList& layers) {
  return !layers.empty() && std::holds_alternative<EmbeddingLayer>(layers.front().kind);
}

std::vector<FieldViolation> Validate(const LayerList& layers, const std::string& path) {
  Violations violations;
  int64_t count = 0;
  ValidateList(layers, path, 1, &count, &violations);
  if (count == 0) violations.push_back({path, "has no layer"});
  if (count > limits::kMaxLayers) {
    violations.push_back({path, absl::StrCat("has too many layers, the most is ", limits::kMaxLayers)});
  }
  return violations;
}

}  // namespace chainfleet
