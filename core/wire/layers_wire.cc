#include "core/wire/layers_wire.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

// Returns the list called `name` of a residual or concat layer.
const LayersProto& ListOf(const v1::Layer& layer, const std::string& name) {
  if (layer.has_concat()) return layer.concat().branch();
  return name == "branch" ? layer.residual().branch() : layer.residual().shortcut();
}

LayersProto* MutableListOf(v1::Layer* layer, const std::string& name) {
  if (layer->has_concat()) return layer->mutable_concat()->mutable_branch();
  return name == "branch" ? layer->mutable_residual()->mutable_branch() : layer->mutable_residual()->mutable_shortcut();
}

// `count`: layers of the whole network so far. Rejects content beyond the bounds before reading it.
LayerList Parse(const LayersProto& proto, const FieldPath& path, int depth, int64_t* count,
                std::vector<FieldViolation>* violations) {
  LayerList layers;
  if (depth > limits::kMaxLayerDepth) {
    violations->push_back(
        {path.text(), absl::StrCat("lists of layers may be nested at most ", limits::kMaxLayerDepth, " deep")});
    return layers;
  }
  *count += proto.size();
  if (*count > limits::kMaxLayers) {
    violations->push_back({path.text(), absl::StrCat("has too many layers, the most is ", limits::kMaxLayers)});
    return layers;
  }
  for (const v1::Layer& message : proto) {
    const FieldPath at{path.above, path.name, static_cast<int>(layers.size())};
    LayerSpec& layer = layers.emplace_back();
    ChoiceFromProto(message, at, &layer.kind, violations);
    ForEachList(layer, [&](const char* name, LayerList& list) {
      const std::string kind = NameOf(layer.kind);
      const FieldPath inside{&at, kind}, below{&inside, name};
      list = Parse(ListOf(message, name), below, depth + 1, count, violations);
    });
  }
  return layers;
}

}  // namespace

void LayersToProto(const LayerList& layers, LayersProto* proto) {
  for (const LayerSpec& layer : layers) {
    v1::Layer* message = proto->Add();
    ChoiceToProto(layer.kind, message);
    ForEachList(layer, [message](const char* name, const LayerList& list) {
      LayersToProto(list, MutableListOf(message, name));
    });
  }
}

LayerList LayersFromProto(const LayersProto& proto, const FieldPath& path, std::vector<FieldViolation>* violations) {
  int64_t count = 0;
  return Parse(proto, path, 1, &count, violations);
}

}  // namespace chainfleet
