#include "worker/numerics/models/lane_network.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "worker/numerics/kernels/dense.h"
#include "worker/numerics/kernels/lane_conv.h"
#include "worker/numerics/kernels/lane_layers.h"
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
void Pool(const GlobalAvgPoolLayer&, const PlacedLayer& layer, const float* x, float* y) {
  LaneMean(PlanesOf(layer.input), x, y);
}

}  // namespace

// Computes one draw for one set of groups.
class LaneNetwork::Pass {
 public:
  Pass(LaneNetwork* network, const float* draw, int64_t groups) : network_(network), draw_(draw), groups_(groups) {}

  Activation Read(const float* x) {
    Activation h = Take();
    std::copy_n(x, groups_ * NumValues(network_->network_.input_shape) * kLanes, h->data());
    return h;
  }

  Activation Run(const std::vector<PlacedLayer>& layers, Activation h) {
    for (const PlacedLayer& layer : layers) {
      h = std::visit([&](const auto& kind) { return Apply(kind, layer, std::move(h)); }, layer.kind);
    }
    return h;
  }

 private:
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
    Activation y = Take();
    DenseForward({NumValues(layer.input), layer.output[0]}, Parameter(layer, 0),
                 linear.bias ? Parameter(layer, 1) : nullptr, h->data(), groups_, /*relu=*/false, y->data());
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
    return InPlace(layer, std::move(h), [&](float* x) {
      LaneGroupNorm(PlanesOf(layer.input), GroupsOf(norm), norm.epsilon, Parameter(layer, 0), Parameter(layer, 1), x);
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

  LaneNetwork* const network_;
  const float* const draw_;
  const int64_t groups_;
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
