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

constexpr int64_t kMaxActivation = int64_t{1} << 31;  // values of one example in a tensor: far from overflow

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

  absl::Status NeedsSequence(const PlacedLayer& layer) const {
    if (IsSequence(layer.input)) return absl::OkStatus();
    return Misfit(layer, "needs a sequence [length, width], gets " + Text(layer.input) + ": put to_sequence before it");
  }

  void Parameter(const PlacedLayer& layer, const std::string& name, Shape shape, int64_t fan_in, float initial = 0) {
    const int64_t offset = NumParameters(network.parameters);
    network.parameters.push_back({layer.name + "." + name, std::move(shape), offset, fan_in, initial});
  }

  absl::Status TooWide(int64_t size, int64_t padding, const PlacedLayer& layer) const {
    return Misfit(layer, absl::StrCat("a window of ", size, IsSequence(layer.input) ? "" : absl::StrCat(" by ", size),
                                      " with padding ", padding, " does not fit inputs ", Text(layer.input)));
  }

  // Returns the output of windows over an image with the same number of channels.
  absl::Status Slide(int64_t size, int64_t stride, int64_t padding, PlacedLayer* layer) const {
    CHAINFLEET_RETURN_IF_ERROR(NeedsImage(*layer));
    layer->output = layer->input;
    for (const size_t d : {1, 2}) {
      const int64_t room = layer->input[d] + 2 * padding - size;
      if (room < 0) return TooWide(size, padding, *layer);
      layer->output[d] = room / stride + 1;
    }
    return absl::OkStatus();
  }

  // Places a norm that scales and shifts each channel, or each value of a vector.
  void Normalise(const LayerKind& kind, PlacedLayer* layer) {
    layer->kind = kind;
    layer->output = layer->input;
    const int64_t size = IsSequence(layer->input) ? layer->input[1] : layer->input[0];
    Parameter(*layer, "scale", {size}, 0, 1);
    Parameter(*layer, "shift", {size}, 0);
  }

  // Counts values of one example that a layer computes.
  void Hold(int64_t values) {
    network.activation_floats = SaturatingAdd(network.activation_floats, values);
    network.largest_output = std::max(network.largest_output, values);
  }

  // Adds a weight [outputs, ...] and the bias of its outputs.
  void WeightAndBias(const PlacedLayer& layer, const std::string& prefix, Shape weight, bool bias) {
    const int64_t outputs = weight[0], inputs = NumValues(weight) / outputs;
    Parameter(layer, prefix + "weight", std::move(weight), inputs);
    if (bias) Parameter(layer, prefix + "bias", {outputs}, inputs);
  }

  std::string path_;  // path of the current layer
};

// Adds the layers that make or take sequences.
class SequencePlacement : public Placement {
 protected:
  absl::Status Infer(const EmbeddingLayer& embedding, const std::string&, PlacedLayer* layer) {
    layer->kind = embedding;
    if (layer->name != "embedding1" || network.activation_floats > 0 || layer->input.size() != 1) {
      return Misfit(*layer, "must be the first layer and take flat indices, gets " + Text(layer->input));
    }
    if (embedding.padding.value_or(0) >= embedding.count) {
      return Misfit(*layer, absl::StrCat("padding ", *embedding.padding, " is no index below ", embedding.count));
    }
    layer->output = {layer->input[0], embedding.width};
    layer->padded = embedding.padding.has_value();
    Parameter(*layer, "weight", {embedding.count, embedding.width}, embedding.width);
    return absl::OkStatus();
  }

  absl::Status Infer(const ToSequenceLayer& sequence, const std::string&, PlacedLayer* layer) {
    layer->kind = sequence;
    const Shape& input = layer->input;
    const bool image = input.size() == 3;
    if (image == sequence.width.has_value() || IsSequence(input)) {
      return Misfit(*layer, "takes images without `width` or flat inputs with `width`, gets " + Text(input));
    }
    const int64_t width = image ? input[0] : *sequence.width;
    if (NumValues(input) % width != 0) {
      return Misfit(*layer, absl::StrCat("width ", width, " must divide the values of inputs ", Text(input)));
    }
    layer->output = {NumValues(input) / width, width};
    return absl::OkStatus();
  }

  absl::Status Infer(const PositionLayer& position, const std::string&, PlacedLayer* layer) {
    layer->kind = position;
    layer->output = layer->input;
    CHAINFLEET_RETURN_IF_ERROR(NeedsSequence(*layer));
    Parameter(*layer, "weight", layer->input, layer->input[1]);
    return absl::OkStatus();
  }

  absl::Status Infer(const AttentionLayer& attention, const std::string&, PlacedLayer* layer) {
    layer->kind = attention;
    layer->output = layer->input;
    CHAINFLEET_RETURN_IF_ERROR(NeedsSequence(*layer));
    const int64_t length = layer->input[0], width = layer->input[1];
    if (width % attention.heads != 0) {
      return Misfit(*layer,
                    absl::StrCat(attention.heads, " heads must divide the width of inputs ", Text(layer->input)));
    }
    WeightAndBias(*layer, "in_", {3 * width, width}, true);
    WeightAndBias(*layer, "out_", {width, width}, true);
    const int64_t weights = SaturatingMultiply(attention.heads, SaturatingMultiply(length, length));
    for (const int64_t values : {3 * length * width, weights, weights, length * width}) Hold(values);
    return absl::OkStatus();
  }

  absl::Status Infer(const Conv1dLayer& conv, const std::string&, PlacedLayer* layer) {
    layer->kind = conv;
    CHAINFLEET_RETURN_IF_ERROR(NeedsSequence(*layer));
    if (layer->padded) return Misfit(*layer, "mixes positions with padding: leave out the embedding's `padding`");
    const int64_t width = layer->input[1], room = layer->input[0] + 2 * conv.padding - conv.kernel;
    if (room < 0) return TooWide(conv.kernel, conv.padding, *layer);
    layer->output = {room / conv.stride + 1, conv.out_channels};
    WeightAndBias(*layer, "", {conv.out_channels, width, conv.kernel}, conv.bias);
    Hold(layer->output[0] * width * conv.kernel);
    return absl::OkStatus();
  }

  absl::Status Infer(const LayerNormLayer& norm, const std::string&, PlacedLayer* layer) {
    if (layer->input.size() == 3) {
      layer->kind = norm;
      return Misfit(*layer,
                    "needs a sequence or flat inputs, gets " + Text(layer->input) + ": take group_norm for images");
    }
    Normalise(norm, layer);
    return absl::OkStatus();
  }

  absl::Status Infer(const GlobalAvgPoolLayer& pool, const std::string&, PlacedLayer* layer) {
    layer->kind = pool;
    if (!IsSequence(layer->input)) CHAINFLEET_RETURN_IF_ERROR(NeedsImage(*layer));
    layer->output = {IsSequence(layer->input) ? layer->input[1] : layer->input[0]};
    return absl::OkStatus();
  }
};

// Places whole lists, and with them all other layers.
class Inference : public SequencePlacement {
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
      layer.padded = padded_;
      layer.parameter = network.parameters.size();
      layer.statistic = network.statistics.size();
      path_ = absl::StrCat(path, "[", i, "]");
      const std::string below = absl::StrCat(path_, ".", NameOf(layers[i].kind));
      CHAINFLEET_RETURN_IF_ERROR(
          std::visit([&](const auto& spec) { return Infer(spec, below, &layer); }, layers[i].kind));
      padded_ = layer.padded && IsSequence(layer.output);
      Hold(NumValues(layer.output));
      if (network.largest_output > kMaxActivation) {
        return Misfit(layer, "computes too many values to give " + Text(layer.output));
      }
      shape = layer.output;
      placed.push_back(std::move(layer));
    }
    return placed;
  }

 private:
  using SequencePlacement::Infer;

  absl::Status Infer(const ConvLayer& conv, const std::string&, PlacedLayer* layer) {
    layer->kind = conv;
    CHAINFLEET_RETURN_IF_ERROR(Slide(conv.kernel, conv.stride, conv.padding, layer));
    const int64_t channels = layer->input[0];
    if (channels % conv.groups != 0 || conv.out_channels % conv.groups != 0) {
      return Misfit(*layer, absl::StrCat(conv.groups, " groups must divide the ", channels, " channels of inputs ",
                                         Text(layer->input), " and the ", conv.out_channels, " output channels"));
    }
    layer->output[0] = conv.out_channels;
    WeightAndBias(*layer, "", {conv.out_channels, channels / conv.groups, conv.kernel, conv.kernel}, conv.bias);
    return absl::OkStatus();
  }

  absl::Status Infer(const LinearLayer& linear, const std::string&, PlacedLayer* layer) {
    layer->kind = linear;
    const bool sequence = IsSequence(layer->input);
    const int64_t outputs = linear.outputs.value_or(num_outputs_);
    layer->output = sequence ? Shape{layer->input[0], outputs} : Shape{outputs};
    WeightAndBias(*layer, "", {outputs, sequence ? layer->input[1] : NumValues(layer->input)}, linear.bias);
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
    const bool branch_padded = padded_;
    padded_ = layer->padded;
    CHAINFLEET_ASSIGN_OR_RETURN(layer->shortcut,
                                Place(residual.shortcut, layer->input, path + ".shortcut", layer->name + ".shortcut."));
    path_ = here;
    // Both lists may have made new positions. Otherwise theirs are those of the input, since the shapes agree.
    layer->padded = branch_padded || padded_;
    const Shape& shortcut = layer->shortcut.empty() ? layer->input : layer->shortcut.back().output;
    if (shortcut != layer->output) {
      return Misfit(*layer, absl::StrCat("the branch gives ", Text(layer->output), ", the shortcut ", Text(shortcut)));
    }
    return absl::OkStatus();
  }

  absl::Status Infer(const ConcatLayer& concat, const std::string& path, PlacedLayer* layer) {
    layer->kind = ConcatLayer();
    if (IsSequence(layer->input)) return Misfit(*layer, "takes images and flat inputs, gets " + Text(layer->input));
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
  bool padded_ = false;  // PlacedLayer::padded of the next layer
};

}  // namespace

absl::StatusOr<NetworkShape> InferNetwork(const LayerList& layers, const Shape& input_shape, int64_t num_outputs,
                                          const std::string& path) {
  Inference inference(num_outputs);
  const Shape shape = input_shape.size() == 3 ? input_shape : Shape{NumValues(input_shape)};
  CHAINFLEET_ASSIGN_OR_RETURN(inference.network.layers, inference.Place(layers, shape, path, ""));
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
