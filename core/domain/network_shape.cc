#include "core/domain/network_shape.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/saturating.h"

namespace chainfleet {
namespace {

using Shape = std::vector<int64_t>;

constexpr int64_t kMaxActivation = int64_t{1} << 31;  // values of one example after a layer: far from overflow

std::string Text(const Shape& shape) { return "[" + absl::StrJoin(shape, ", ") + "]"; }

// Returns the name of a layer kind in tensors and messages.
const char* ShortName(const LayerKind& kind) {
  if (std::holds_alternative<LinearLayer>(kind)) return "fc";
  if (std::holds_alternative<BatchNormLayer>(kind)) return "bn";
  return std::visit([](const auto& layer) -> const char* { return layer.kName; }, kind);
}

// The network so far, and what layers add to it.
class Placement {
 public:
  NetworkShape network;

 protected:
  absl::Status Misfit(const PlacedLayer& layer, const std::string& what) const {
    return InvalidFields({{path_, layer.name + ": " + what}});
  }

  absl::Status NeedsImage(const PlacedLayer& layer) const {
    if (layer.input.size() == 3) return absl::OkStatus();
    return Misfit(layer, "needs inputs [channels, height, width], gets " + Text(layer.input));
  }

  void Parameter(const PlacedLayer& layer, const char* name, Shape shape, int64_t fan_in, float initial = 0) {
    const int64_t offset = NumParameters(network.parameters);
    network.parameters.push_back({layer.name + "." + name, std::move(shape), offset, fan_in, initial});
  }

  // Returns the output of windows over an image with the same number of channels.
  absl::Status Slide(int64_t size, int64_t stride, int64_t padding, PlacedLayer* layer) const {
    CHAINFLEET_RETURN_IF_ERROR(NeedsImage(*layer));
    layer->output = layer->input;
    for (const size_t d : {1, 2}) {
      const int64_t room = layer->input[d] + 2 * padding - size;
      if (room < 0) {
        return Misfit(*layer, absl::StrCat("a window of ", size, " by ", size, " with padding ", padding,
                                           " does not fit inputs ", Text(layer->input)));
      }
      layer->output[d] = room / stride + 1;
    }
    return absl::OkStatus();
  }

  // Places a norm that scales and shifts each entry of the first dimension.
  void Normalise(const LayerKind& kind, PlacedLayer* layer) {
    layer->kind = kind;
    layer->output = layer->input;
    Parameter(*layer, "scale", {layer->input[0]}, 0, 1);
    Parameter(*layer, "shift", {layer->input[0]}, 0);
  }

  std::string path_;  // path of the current layer
};

class Inference : public Placement {
 public:
  explicit Inference(int64_t num_outputs) : num_outputs_(num_outputs) {}

  absl::StatusOr<std::vector<PlacedLayer>> Place(const LayerList& layers, Shape shape, const std::string& path,
                                                 const std::string& prefix) {
    std::vector<PlacedLayer> placed;
    std::map<std::string, int> seen;
    for (size_t i = 0; i < layers.size(); ++i) {
      const std::string name = ShortName(layers[i].kind);
      PlacedLayer layer;
      layer.name = absl::StrCat(prefix, name, ++seen[name]);
      layer.input = shape;
      layer.parameter = network.parameters.size();
      layer.statistic = network.statistics.size();
      path_ = absl::StrCat(path, "[", i, "]");
      const std::string below = absl::StrCat(path_, ".", NameOf(layers[i].kind));
      CHAINFLEET_RETURN_IF_ERROR(
          std::visit([&](const auto& spec) { return Infer(spec, below, &layer); }, layers[i].kind));
      if (NumValues(layer.output) > kMaxActivation)
        return Misfit(layer, "gives too many values: " + Text(layer.output));
      network.activation_floats = SaturatingAdd(network.activation_floats, NumValues(layer.output));
      network.largest_output = std::max(network.largest_output, NumValues(layer.output));
      shape = layer.output;
      placed.push_back(std::move(layer));
    }
    return placed;
  }

 private:
  absl::Status Infer(const ConvLayer& conv, const std::string&, PlacedLayer* layer) {
    layer->kind = conv;
    CHAINFLEET_RETURN_IF_ERROR(Slide(conv.kernel, conv.stride, conv.padding, layer));
    const int64_t channels = layer->input[0];
    if (channels % conv.groups != 0 || conv.out_channels % conv.groups != 0) {
      return Misfit(*layer, absl::StrCat(conv.groups, " groups must divide the ", channels, " channels of inputs ",
                                         Text(layer->input), " and the ", conv.out_channels, " output channels"));
    }
    layer->output[0] = conv.out_channels;
    const Shape weight = {conv.out_channels, channels / conv.groups, conv.kernel, conv.kernel};
    const int64_t fan_in = NumValues(weight) / conv.out_channels;
    Parameter(*layer, "weight", weight, fan_in);
    if (conv.bias) Parameter(*layer, "bias", {conv.out_channels}, fan_in);
    return absl::OkStatus();
  }

  absl::Status Infer(const LinearLayer& linear, const std::string&, PlacedLayer* layer) {
    layer->kind = linear;
    const int64_t inputs = NumValues(layer->input), outputs = linear.outputs.value_or(num_outputs_);
    layer->output = {outputs};
    Parameter(*layer, "weight", {outputs, inputs}, inputs);
    if (linear.bias) Parameter(*layer, "bias", {outputs}, inputs);
    return absl::OkStatus();
  }

  absl::Status Infer(const BatchNormLayer& norm, const std::string&, PlacedLayer* layer) {
    Normalise(norm, layer);
    if (layer->input.size() != 1) CHAINFLEET_RETURN_IF_ERROR(NeedsImage(*layer));
    const int64_t channels = layer->input[0];
    network.statistics.push_back({layer->name + ".mean", {channels}});
    network.statistics.push_back({layer->name + ".var", {channels}});
    return absl::OkStatus();
  }

  absl::Status Infer(const FrnLayer& norm, const std::string&, PlacedLayer* layer) {
    Normalise(norm, layer);
    CHAINFLEET_RETURN_IF_ERROR(NeedsImage(*layer));
    if (norm.threshold) Parameter(*layer, "threshold", {layer->input[0]}, 0);
    return absl::OkStatus();
  }

  absl::Status Infer(const LayerNormLayer& norm, const std::string&, PlacedLayer* layer) {
    if (layer->input.size() != 1) {
      layer->kind = norm;
      return Misfit(*layer, "needs flat inputs, gets " + Text(layer->input) + ": take group_norm for images");
    }
    Normalise(norm, layer);
    return absl::OkStatus();
  }

  absl::Status Infer(const GroupNormLayer& norm, const std::string&, PlacedLayer* layer) {
    Normalise(norm, layer);
    CHAINFLEET_RETURN_IF_ERROR(NeedsImage(*layer));
    if (layer->input[0] % norm.groups == 0) return absl::OkStatus();
    return Misfit(*layer, absl::StrCat(norm.groups, " groups must divide the ", layer->input[0], " channels of inputs ",
                                       Text(layer->input)));
  }

  absl::Status Infer(const MaxPoolLayer& pool, const std::string&, PlacedLayer* layer) {
    layer->kind = pool;
    if (2 * pool.padding > pool.size) {
      return Misfit(*layer, absl::StrCat("padding ", pool.padding, " is more than half of size ", pool.size));
    }
    return Slide(pool.size, pool.stride.value_or(pool.size), pool.padding, layer);
  }

  absl::Status Infer(const AvgPoolLayer& pool, const std::string&, PlacedLayer* layer) {
    layer->kind = pool;
    return Slide(pool.size, pool.stride.value_or(pool.size), 0, layer);
  }

  absl::Status Infer(const GlobalAvgPoolLayer& pool, const std::string&, PlacedLayer* layer) {
    layer->kind = pool;
    CHAINFLEET_RETURN_IF_ERROR(NeedsImage(*layer));
    layer->output = {layer->input[0]};
    return absl::OkStatus();
  }

  absl::Status Infer(const FlattenLayer& flatten, const std::string&, PlacedLayer* layer) {
    layer->kind = flatten;
    layer->output = {NumValues(layer->input)};
    return absl::OkStatus();
  }

  // An activation, or dropout: the shape stays, and there is no parameter.
  template <typename Elementwise>
  absl::Status Infer(const Elementwise& elementwise, const std::string&, PlacedLayer* layer) {
    layer->kind = elementwise;
    layer->output = layer->input;
    return absl::OkStatus();
  }

  absl::Status Infer(const ResidualLayer& residual, const std::string& path, PlacedLayer* layer) {
    layer->kind = ResidualLayer();
    const std::string here = path_;
    CHAINFLEET_RETURN_IF_ERROR(PlaceBranch(residual.branch, path, layer));
    CHAINFLEET_ASSIGN_OR_RETURN(layer->shortcut,
                                Place(residual.shortcut, layer->input, path + ".shortcut", layer->name + ".shortcut."));
    path_ = here;
    const Shape& shortcut = layer->shortcut.empty() ? layer->input : layer->shortcut.back().output;
    if (shortcut != layer->output) {
      return Misfit(*layer, absl::StrCat("the branch gives ", Text(layer->output), ", the shortcut ", Text(shortcut)));
    }
    return absl::OkStatus();
  }

  absl::Status Infer(const ConcatLayer& concat, const std::string& path, PlacedLayer* layer) {
    layer->kind = ConcatLayer();
    const std::string here = path_;
    CHAINFLEET_RETURN_IF_ERROR(PlaceBranch(concat.branch, path, layer));
    path_ = here;
    Shape expected = layer->input;
    expected[0] = layer->output[0];
    if (expected != layer->output) {
      return Misfit(*layer, absl::StrCat("the branch gives ", Text(layer->output), " beside inputs ",
                                         Text(layer->input), ": all but the channels must agree"));
    }
    layer->output[0] += layer->input[0];
    return absl::OkStatus();
  }

  absl::Status PlaceBranch(const LayerList& branch, const std::string& path, PlacedLayer* layer) {
    CHAINFLEET_ASSIGN_OR_RETURN(layer->branch, Place(branch, layer->input, path + ".branch", layer->name + ".branch."));
    layer->output = layer->branch.back().output;
    return absl::OkStatus();
  }

  const int64_t num_outputs_;
};

}  // namespace

absl::StatusOr<NetworkShape> InferNetwork(const LayerList& layers, const Shape& input_shape, int64_t num_outputs,
                                          const std::string& path) {
  Inference inference(num_outputs);
  CHAINFLEET_ASSIGN_OR_RETURN(inference.network.layers, inference.Place(layers, input_shape, path, ""));
  NetworkShape network = std::move(inference.network);
  network.input_shape = input_shape;
  network.num_outputs = num_outputs;
  const PlacedLayer& last = network.layers.back();
  if (last.output != Shape{num_outputs}) {
    return InvalidFields({{absl::StrCat(path, "[", layers.size() - 1, "]"),
                           absl::StrCat(last.name, ": the last layer gives ", Text(last.output),
                                        ", the likelihood takes ", Text({num_outputs}))}});
  }
  int64_t offset = NumParameters(network.parameters);
  for (ParameterShape& statistic : network.statistics) {
    statistic.offset = offset;
    offset = SaturatingAdd(offset, NumValues(statistic.shape));
  }
  return network;
}

}  // namespace chainfleet
