// A network as a list of layers: plain values from a job file or from a built-in model.
//
// A layer describes its operation, not its inputs: shapes and parameters follow from the data set
// (core/domain/network_shape.h). Inputs are images [channels, height, width], sequences [length, width], or flat. Data
// are images if they have three axes, else flat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/domain/fields.h"

namespace chainfleet {

inline constexpr Bounds kExtentBounds = Between(1, 65536);  // channels and outputs
inline constexpr Bounds kWindowBounds = Between(1, 64);     // kernels, pools and strides
inline constexpr Bounds kPaddingBounds = Between(0, 64);
inline constexpr Bounds kIndexBounds = Between(1, 16777216);  // float32 has each of these indices

// Convolves with square windows and zero padding. Tensors: weight, bias.
struct ConvLayer {
  static constexpr char kName[] = "conv";
  int64_t out_channels = 0;
  int64_t kernel = 3, stride = 1, padding = 0, groups = 1;
  bool bias = true;
  static void Fields(auto& self, auto&& visit) {
    visit("out_channels", self.out_channels, kExtentBounds);
    visit("kernel", self.kernel, kWindowBounds);
    visit("stride", self.stride, kWindowBounds);
    visit("padding", self.padding, kPaddingBounds);
    visit("groups", self.groups, kExtentBounds);
    visit("bias", self.bias);
  }
  bool operator==(const ConvLayer&) const = default;
};

// Computes W x + b; flattens images first, and takes each position of a sequence alone. Without `outputs`, the
// likelihood sets the number. Tensors: weight, bias.
struct LinearLayer {
  static constexpr char kName[] = "linear";
  std::optional<int64_t> outputs;
  bool bias = true;
  static void Fields(auto& self, auto&& visit) {
    visit("outputs", self.outputs, kExtentBounds);
    visit("bias", self.bias);
  }
  bool operator==(const LinearLayer&) const = default;
};

// Batch norm (Ioffe & Szegedy, ICML 2015), per channel: batch statistics while sampling, the draw's own in predictions.
// Tensors: scale, shift; statistics: mean, variance.
struct BatchNormLayer {
  static constexpr char kName[] = "batch_norm";
  double epsilon = 1e-5;
  static void Fields(auto& self, auto&& visit) { visit("epsilon", self.epsilon, Above(0)); }
  bool operator==(const BatchNormLayer&) const = default;
};

// Filter response norm (Singh & Krishnan, CVPR 2020): x / sqrt(mean over pixels of x^2 + epsilon), scaled and shifted,
// then max(., tau) with a learned `threshold` tau per channel. Tensors: scale, shift, threshold.
struct FrnLayer {
  static constexpr char kName[] = "frn";
  double epsilon = 1e-6;
  bool threshold = true;
  static void Fields(auto& self, auto&& visit) {
    visit("epsilon", self.epsilon, Above(0));
    visit("threshold", self.threshold);
  }
  bool operator==(const FrnLayer&) const = default;
};

struct ReluLayer {
  static constexpr char kName[] = "relu";
  static void Fields(auto&, auto&&) {}
  bool operator==(const ReluLayer&) const = default;
};

// x Phi(x), Phi the standard normal distribution function (Hendrycks & Gimpel 2016): the exact form.
struct GeluLayer {
  static constexpr char kName[] = "gelu";
  static void Fields(auto&, auto&&) {}
  bool operator==(const GeluLayer&) const = default;
};

// x / (1 + exp(-x)) (Elfwing et al. 2018).
struct SiluLayer {
  static constexpr char kName[] = "silu";
  static void Fields(auto&, auto&&) {}
  bool operator==(const SiluLayer&) const = default;
};

struct TanhLayer {
  static constexpr char kName[] = "tanh";
  static void Fields(auto&, auto&&) {}
  bool operator==(const TanhLayer&) const = default;
};

// log(1 + exp(x)).
struct SoftplusLayer {
  static constexpr char kName[] = "softplus";
  static void Fields(auto&, auto&&) {}
  bool operator==(const SoftplusLayer&) const = default;
};

// x where x > 0, else slope * x (Maas et al. 2013).
struct LeakyReluLayer {
  static constexpr char kName[] = "leaky_relu";
  double slope = 0.01;
  static void Fields(auto& self, auto&& visit) { visit("slope", self.slope, Between(0, 1)); }
  bool operator==(const LeakyReluLayer&) const = default;
};

// Layer norm (Ba et al. 2016) over all values of a flat example, or of each position of a sequence. Tensors: scale,
// shift.
struct LayerNormLayer {
  static constexpr char kName[] = "layer_norm";
  double epsilon = 1e-5;
  static void Fields(auto& self, auto&& visit) { visit("epsilon", self.epsilon, Above(0)); }
  bool operator==(const LayerNormLayer&) const = default;
};

// Group norm (Wu & He, ECCV 2018) of images: over the channels and pixels of each group. Tensors, per channel: scale,
// shift.
struct GroupNormLayer {
  static constexpr char kName[] = "group_norm";
  int64_t groups = 0;  // groups of channels
  double epsilon = 1e-5;
  static void Fields(auto& self, auto&& visit) {
    visit("groups", self.groups, kExtentBounds);
    visit("epsilon", self.epsilon, Above(0));
  }
  bool operator==(const GroupNormLayer&) const = default;
};

// Drops windows that reach over the far edge. Without `stride` the windows do not overlap.
struct MaxPoolLayer {
  static constexpr char kName[] = "max_pool";
  int64_t size = 2;
  std::optional<int64_t> stride;
  int64_t padding = 0;  // at most half of size
  static void Fields(auto& self, auto&& visit) {
    visit("size", self.size, kWindowBounds);
    visit("stride", self.stride, kWindowBounds);
    visit("padding", self.padding, kPaddingBounds);
  }
  bool operator==(const MaxPoolLayer&) const = default;
};

struct AvgPoolLayer {
  static constexpr char kName[] = "avg_pool";
  int64_t size = 2;
  std::optional<int64_t> stride;
  static void Fields(auto& self, auto&& visit) {
    visit("size", self.size, kWindowBounds);
    visit("stride", self.stride, kWindowBounds);
  }
  bool operator==(const AvgPoolLayer&) const = default;
};

// Maps [channels, height, width] to [channels], and [length, width] to [width].
struct GlobalAvgPoolLayer {
  static constexpr char kName[] = "global_avg_pool";
  static void Fields(auto&, auto&&) {}
  bool operator==(const GlobalAvgPoolLayer&) const = default;
};

struct FlattenLayer {
  static constexpr char kName[] = "flatten";
  static void Fields(auto&, auto&&) {}
  bool operator==(const FlattenLayer&) const = default;
};

// While sampling, sets each value to 0 with probability `rate` and divides the rest by 1 - rate. Predictions use all.
struct DropoutLayer {
  static constexpr char kName[] = "dropout";
  double rate = 0.5;
  static void Fields(auto& self, auto&& visit) { visit("rate", self.rate, Below(0, 1)); }
  bool operator==(const DropoutLayer&) const = default;
};

// A learned vector for each index (token of a text), the first layer only. Maps [length] to [length, width]. Attention
// and means leave out the positions of the index `padding`. Tensors: weight [count, width].
struct EmbeddingLayer {
  static constexpr char kName[] = "embedding";
  int64_t count = 0, width = 0;
  std::optional<int64_t> padding;
  static void Fields(auto& self, auto&& visit) {
    visit("count", self.count, kIndexBounds);
    visit("width", self.width, kExtentBounds);
    visit("padding", self.padding, AtLeast(0));
  }
  bool operator==(const EmbeddingLayer&) const = default;
};

// Reads an image as the sequence of its pixels, [height width, channels], and other inputs as vectors of `width`
// values.
struct ToSequenceLayer {
  static constexpr char kName[] = "to_sequence";
  std::optional<int64_t> width;
  static void Fields(auto& self, auto&& visit) { visit("width", self.width, kExtentBounds); }
  bool operator==(const ToSequenceLayer&) const = default;
};

// Adds a learned vector to each position of a sequence (Gehring et al., ICML 2017). Tensors: weight [length, width].
struct PositionLayer {
  static constexpr char kName[] = "position";
  static void Fields(auto&, auto&&) {}
  bool operator==(const PositionLayer&) const = default;
};

// Self-attention over the positions of a sequence (Vaswani et al., NeurIPS 2017), as torch.nn.MultiheadAttention.
// Tensors: in_weight [3 width, width], in_bias, out_weight [width, width], out_bias.
struct AttentionLayer {
  static constexpr char kName[] = "attention";
  int64_t heads = 1;
  static void Fields(auto& self, auto&& visit) { visit("heads", self.heads, kExtentBounds); }
  bool operator==(const AttentionLayer&) const = default;
};

// Convolves along the positions of a sequence, with zero padding. Tensors: weight [out_channels, width, kernel], bias.
struct Conv1dLayer {
  static constexpr char kName[] = "conv1d";
  int64_t out_channels = 0;
  int64_t kernel = 3, stride = 1, padding = 0;
  bool bias = true;
  static void Fields(auto& self, auto&& visit) {
    visit("out_channels", self.out_channels, kExtentBounds);
    visit("kernel", self.kernel, kWindowBounds);
    visit("stride", self.stride, kWindowBounds);
    visit("padding", self.padding, kPaddingBounds);
    visit("bias", self.bias);
  }
  bool operator==(const Conv1dLayer&) const = default;
};

struct LayerSpec;
using LayerList = std::vector<LayerSpec>;

// Computes branch(x) + shortcut(x); an empty shortcut is x itself.
struct ResidualLayer {
  static constexpr char kName[] = "residual";
  LayerList branch, shortcut;
  static void Fields(auto&, auto&&) {}
  bool operator==(const ResidualLayer& other) const;
};

// Concatenates the channels of x and of branch(x).
struct ConcatLayer {
  static constexpr char kName[] = "concat";
  LayerList branch;
  static void Fields(auto&, auto&&) {}
  bool operator==(const ConcatLayer& other) const;
};

using LayerKind = std::variant<ConvLayer, LinearLayer, BatchNormLayer, FrnLayer, ReluLayer, MaxPoolLayer, AvgPoolLayer,
                               GlobalAvgPoolLayer, FlattenLayer, DropoutLayer, ResidualLayer, ConcatLayer, GeluLayer,
                               SiluLayer, TanhLayer, SoftplusLayer, LeakyReluLayer, LayerNormLayer, GroupNormLayer,
                               EmbeddingLayer, ToSequenceLayer, PositionLayer, AttentionLayer, Conv1dLayer>;

struct LayerSpec {
  LayerKind kind;
  bool operator==(const LayerSpec&) const = default;
};

// Visits the lists inside a layer by their names in a job file ("branch", "shortcut"); `layer` may be const.
template <typename Layer, typename Visit>
void ForEachList(Layer& layer, Visit&& visit) {
  if (auto* residual = std::get_if<ResidualLayer>(&layer.kind)) {
    visit("branch", residual->branch);
    visit("shortcut", residual->shortcut);
  } else if (auto* concat = std::get_if<ConcatLayer>(&layer.kind)) {
    visit("branch", concat->branch);
  }
}

// Returns the name, such as "conv".
std::string NameOf(const LayerKind& kind);

// Returns true if any layer, at any depth, normalises by the mini-batch.
bool HasBatchNorm(const LayerList& layers);

// Returns true if the network takes indices, which it reads as they are stored.
bool TakesIndices(const LayerList& layers);

// Checks without shapes: bounds, limits::kMaxLayers and kMaxLayerDepth. Paths are below `path`, such as
// "model.layers[3].residual.branch[0].conv.kernel".
std::vector<FieldViolation> Validate(const LayerList& layers, const std::string& path);

}  // namespace chainfleet
