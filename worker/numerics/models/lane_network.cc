#include "worker/numerics/models/lane_network.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "worker/numerics/kernels/dense.h"
#include "worker/numerics/kernels/lane_conv.h"
#include "worker/numerics/kernels/lane_layers.h"
#include "worker/numerics/kernels/lane_sequence.h"
#include "worker/numerics/kernels/lanes.h"

namespace chainfleet {
namespace {

using Activation = std::shared_ptr<LaneBuffer<float>>;  // [group][value][16]

// Floats of one example in the widest activation of `layers`.
int64_t Widest(const std::vector<PlacedLayer>& layers) {
  int64_t widest = 0;
  for (const PlacedLayer& layer : layers) {
    widest = std::max(
        {widest, NumValues(layer.input), NumValues(layer.output), Widest(layer.branch), Widest(layer.shortcut)});
    if (std::holds_alternative<AttentionLayer>(layer.kind)) widest = std::max(widest, 3 * NumValues(layer.input));
    if (const auto* conv = std::get_if<Conv1dLayer>(&layer.kind)) {
      widest = std::max(widest, layer.output[0] * layer.input[1] * conv->kernel);
    }
    const auto* conv = std::get_if<ConvLayer>(&layer.kind);
    if (conv == nullptr) continue;
    const int64_t border = 2 * conv->padding;
    widest = std::max(widest, layer.input[0] * (layer.input[1] + border) * (layer.input[2] + border));
  }
  return widest;
}

LanePlanes PlanesOf(const std::vector<int64_t>& shape) { return {shape[0], NumValues(shape) / shape[0]}; }

LanePool PoolOf(const PlacedLayer& layer, int64_t size, int64_t stride, int64_t padding) {
  return {layer.input[0], layer.input[1], layer.input[2], size, stride, padding};
}

LaneSequence SequenceOf(const std::vector<int64_t>& shape) { return {shape[0], shape[1]}; }

int64_t GroupsOf(const LayerNormLayer&) { return 1; }
int64_t GroupsOf(const GroupNormLayer& norm) { return norm.groups; }

void Activate(const ReluLayer&, int64_t count, float* x) { LaneRelu(count, x); }
void Activate(const GeluLayer&, int64_t count, float* x) { LaneGelu(count, x); }
void Activate(const SiluLayer&, int64_t count, float* x) { LaneSilu(count, x); }
void Activate(const TanhLayer&, int64_t count, float* x) { LaneTanh(count, x); }
void Activate(const SoftplusLayer&, int64_t count, float* x) { LaneSoftplus(count, x); }
void Activate(const LeakyReluLayer& leaky, int64_t count, float* x) { LaneLeakyRelu(count, leaky.slope, x); }

void Pool(const MaxPoolLayer& pool, const PlacedLayer& layer, const float* x, float* y) {
  LaneMaxPool(PoolOf(layer, pool.size, pool.stride.value_or(pool.size), pool.padding), x, y);
}
void Pool(const AvgPoolLayer& pool, const PlacedLayer& layer, const float* x, float* y) {
  LaneAvgPool(PoolOf(layer, pool.size, pool.stride.value_or(pool.size), 0), x, y);
}

}  // namespace

// One draw for one set of groups, and the activations of its pass.
class LaneNetwork::Work {
 public:
  Work(LaneNetwork* network, const float* draw, int64_t groups) : network_(network), draw_(draw), groups_(groups) {}

  Activation Read(const float* x) {
    Activation h = Take();
    std::copy_n(x, groups_ * NumValues(network_->network_.input_shape) * kLanes, h->data());
    return h;
  }

 protected:
  const float* Parameter(const PlacedLayer& layer, size_t i) const {
    return draw_ + network_->network_.parameters[layer.parameter + i].offset;
  }
  const float* Statistic(const PlacedLayer& layer, size_t i) const {
    return draw_ + network_->network_.statistics[layer.statistic + i].offset;
  }

  // Returns a free activation; its values are arbitrary.
  Activation Take() {
    for (const Activation& activation : network_->idle_) {
      if (activation.use_count() == 1) return activation;
    }
    return network_->idle_.emplace_back(
        std::make_shared<LaneBuffer<float>>(kSliceGroups * network_->largest_ * kLanes));
  }

  // Returns `h` if it may be overwritten (only the pool and the caller hold it), else a copy of its first `values`
  // values.
  Activation Own(Activation h, int64_t values) {
    if (h.use_count() == 2) return h;
    Activation copy = Take();
    std::copy_n(h->data(), groups_ * values * kLanes, copy->data());
    return copy;
  }

  // Calls body(in, out) for every group, `out` in a new activation of a layer with this input and output.
  template <typename Body>
  Activation Map(int64_t inputs, int64_t outputs, const Activation& h, const Body& body) {
    Activation y = Take();
    for (int64_t g = 0; g < groups_; ++g) body(h->data() + g * inputs * kLanes, y->data() + g * outputs * kLanes);
    return y;
  }
  template <typename Body>
  Activation Map(const PlacedLayer& layer, const Activation& h, const Body& body) {
    return Map(NumValues(layer.input), NumValues(layer.output), h, body);
  }

  // Calls body(values) for every group of an activation, which is overwritten.
  template <typename Body>
  Activation InPlace(const PlacedLayer& layer, Activation h, const Body& body) {
    const int64_t values = NumValues(layer.input);
    h = Own(std::move(h), values);
    for (int64_t g = 0; g < groups_; ++g) body(h->data() + g * values * kLanes);
    return h;
  }

  // Multiplies `rows` rows of each group, x[row][inputs][16], by weight `i` of the layer and adds the bias after it.
  Activation Product(const PlacedLayer& layer, size_t i, bool bias, DenseShape shape, int64_t rows, const float* x) {
    Activation y = Take();
    for (int64_t row = 0; row < groups_ * rows; row += kSliceGroups) {
      DenseForward(shape, Parameter(layer, i), bias ? Parameter(layer, i + 1) : nullptr,
                   x + row * shape.inputs * kLanes, std::min(kSliceGroups, groups_ * rows - row), /*relu=*/false,
                   y->data() + row * shape.outputs * kLanes);
    }
    return y;
  }

  // Which positions of a group count, [length][16]; null: all.
  const float* Counted(const PlacedLayer& layer, int64_t group) const {
    return layer.padded ? counted_->data() + group * layer.input[0] * kLanes : nullptr;
  }

  LaneNetwork* const network_;
  const float* const draw_;
  const int64_t groups_;
  Activation counted_;  // [group][length][16]; null: the network's embedding has no padding
};

// Computes the layers.
class LaneNetwork::Pass : public LaneNetwork::Work {
 public:
  using Work::Work;

  Activation Run(const std::vector<PlacedLayer>& layers, Activation h) {
    for (const PlacedLayer& layer : layers) {
      h = std::visit([&](const auto& kind) { return Apply(kind, layer, std::move(h)); }, layer.kind);
    }
    return h;
  }

 private:
  Activation Apply(const ConvLayer& conv, const PlacedLayer& layer, Activation h) {
    const LanePool border = PoolOf(layer, 1, 1, conv.padding);
    const LaneConvShape shape{layer.input[0], conv.out_channels,   conv.groups,       conv.kernel,
                              conv.stride,    border.out_height(), border.out_width()};
    if (conv.padding > 0) {
      h = Map(NumValues(layer.input), shape.in_channels * shape.in_height * shape.in_width, h,
              [&](const float* x, float* y) { LanePad(border, x, y); });
    }
    return Map(shape.in_channels * shape.in_height * shape.in_width, NumValues(layer.output), h,
               [&](const float* x, float* y) {
                 LaneConvForward(shape, Parameter(layer, 0), conv.bias ? Parameter(layer, 1) : nullptr, x, y);
               });
  }

  Activation Apply(const LinearLayer& linear, const PlacedLayer& layer, Activation h) {
    const int64_t inputs = IsSequence(layer.input) ? layer.input[1] : NumValues(layer.input);
    return Product(layer, 0, linear.bias, {inputs, layer.output.back()}, NumValues(layer.input) / inputs, h->data());
  }

  Activation Apply(const EmbeddingLayer& embedding, const PlacedLayer& layer, Activation h) {
    const LaneSequence sequence = SequenceOf(layer.output);
    if (embedding.padding) {
      counted_ = Map(sequence.length, sequence.length, h,
                     [&](const float* x, float* y) { LaneCounted(sequence.length, *embedding.padding, x, y); });
    }
    return Map(layer, h, [&](const float* x, float* y) {
      TORCH_CHECK_VALUE(LaneEmbed(sequence, embedding.count, Parameter(layer, 0), x, y),
                        "the network takes indices from 0 to ", embedding.count - 1, ", but the inputs have others");
    });
  }

  Activation Apply(const ToSequenceLayer&, const PlacedLayer& layer, Activation h) {
    if (layer.input.size() == 1) return h;
    return Map(layer, h, [&](const float* x, float* y) { LanePixels(SequenceOf(layer.output), x, y); });
  }

  Activation Apply(const PositionLayer&, const PlacedLayer& layer, Activation h) {
    return InPlace(layer, std::move(h), [&](float* x) { LaneShift(SequenceOf(layer.input), Parameter(layer, 0), x); });
  }

  Activation Apply(const AttentionLayer& attention, const PlacedLayer& layer, Activation h) {
    const LaneSequence sequence = SequenceOf(layer.input);
    const int64_t width = sequence.width, values = NumValues(layer.input) * kLanes;
    const Activation in = Product(layer, 0, true, {width, 3 * width}, sequence.length, h->data());
    const Activation scores = Take(), mixed = Take();
    for (int64_t g = 0; g < groups_; ++g) {
      LaneAttention(sequence, attention.heads, in->data() + 3 * g * values, Counted(layer, g), scores->data(),
                    mixed->data() + g * values);
    }
    return Product(layer, 2, true, {width, width}, sequence.length, mixed->data());
  }

  Activation Apply(const Conv1dLayer& conv, const PlacedLayer& layer, Activation h) {
    const DenseShape shape{layer.input[1] * conv.kernel, conv.out_channels};
    const Activation windows =
        Map(NumValues(layer.input), layer.output[0] * shape.inputs, h, [&](const float* x, float* y) {
          LaneWindows(SequenceOf(layer.input), conv.kernel, conv.stride, conv.padding, x, y);
        });
    return Product(layer, 0, conv.bias, shape, layer.output[0], windows->data());
  }

  Activation Apply(const GlobalAvgPoolLayer&, const PlacedLayer& layer, Activation h) {
    if (!IsSequence(layer.input)) {
      return Map(layer, h, [&](const float* x, float* y) { LaneMean(PlanesOf(layer.input), x, y); });
    }
    const LaneSequence sequence = SequenceOf(layer.input);
    Activation y = Take();
    for (int64_t g = 0; g < groups_; ++g) {
      LanePositionMean(sequence, Counted(layer, g), h->data() + g * NumValues(layer.input) * kLanes,
                       y->data() + g * sequence.width * kLanes);
    }
    return y;
  }

  Activation Apply(const BatchNormLayer& norm, const PlacedLayer& layer, Activation h) {
    return InPlace(layer, std::move(h), [&](float* x) {
      LaneBatchNorm(PlanesOf(layer.input), Statistic(layer, 0), Statistic(layer, 1), norm.epsilon, Parameter(layer, 0),
                    Parameter(layer, 1), x);
    });
  }

  Activation Apply(const FrnLayer& norm, const PlacedLayer& layer, Activation h) {
    return InPlace(layer, std::move(h), [&](float* x) {
      LaneFilterResponseNorm(PlanesOf(layer.input), norm.epsilon, Parameter(layer, 0), Parameter(layer, 1),
                             norm.threshold ? Parameter(layer, 2) : nullptr, x);
    });
  }

  template <typename Norm>
  requires requires(const Norm& norm) { GroupsOf(norm); }
  Activation Apply(const Norm& norm, const PlacedLayer& layer, Activation h) {
    const bool sequence = IsSequence(layer.input);
    const LanePlanes planes = sequence ? LanePlanes{layer.input[1], 1} : PlanesOf(layer.input);
    return InPlace(layer, std::move(h), [&](float* x) {
      for (int64_t p = 0; p < (sequence ? layer.input[0] : 1); ++p, x += planes.channels * planes.size * kLanes) {
        LaneGroupNorm(planes, GroupsOf(norm), norm.epsilon, Parameter(layer, 0), Parameter(layer, 1), x);
      }
    });
  }

  template <typename Elementwise>
  requires requires(const Elementwise& kind) { Activate(kind, 0, nullptr); }
  Activation Apply(const Elementwise& kind, const PlacedLayer& layer, Activation h) {
    return InPlace(layer, std::move(h), [&](float* x) { Activate(kind, NumValues(layer.input), x); });
  }

  template <typename Kind>
  requires requires(const Kind& kind, const PlacedLayer& layer) { Pool(kind, layer, nullptr, nullptr); }
  Activation Apply(const Kind& kind, const PlacedLayer& layer, Activation h) {
    return Map(layer, h, [&](const float* x, float* y) { Pool(kind, layer, x, y); });
  }

  // [channel][y][x] is the order of a flat row. Predictions use all units.
  Activation Apply(const FlattenLayer&, const PlacedLayer&, Activation h) { return h; }
  Activation Apply(const DropoutLayer&, const PlacedLayer&, Activation h) { return h; }

  Activation Apply(const ResidualLayer&, const PlacedLayer& layer, Activation h) {
    const int64_t values = NumValues(layer.output);
    Activation sum = Own(Run(layer.branch, h), values);
    const Activation shortcut = Run(layer.shortcut, std::move(h));
    LaneAdd(groups_ * values, shortcut->data(), sum->data());
    return sum;
  }

  Activation Apply(const ConcatLayer&, const PlacedLayer& layer, Activation h) {
    const Activation branch = Run(layer.branch, h);
    const int64_t own = NumValues(layer.input) * kLanes, more = NumValues(layer.output) * kLanes - own;
    Activation y = Take();
    for (int64_t g = 0; g < groups_; ++g) {
      float* const out = y->data() + g * (own + more);
      std::copy_n(h->data() + g * own, own, out);
      std::copy_n(branch->data() + g * more, more, out + own);
    }
    return y;
  }
};

LaneNetwork::LaneNetwork(NetworkShape network) : network_(std::move(network)), largest_(Widest(network_.layers)) {}

void LaneNetwork::Forward(const float* draw, int64_t groups, const float* x, float* y) {
  // Images pass all layers group by group, so that they stay in the cache. Flat inputs pass together, to reuse the
  // weights.
  const int64_t at_once = network_.input_shape.size() == 3 ? 1 : groups;
  for (int64_t g = 0; g < groups; g += at_once) {
    Pass pass(this, draw, at_once);
    const Activation outputs = pass.Run(network_.layers, pass.Read(x + g * NumValues(network_.input_shape) * kLanes));
    const int64_t size = network_.num_outputs * kLanes;
    std::copy_n(outputs->data(), at_once * size, y + g * size);
  }
}

}  // namespace chainfleet
