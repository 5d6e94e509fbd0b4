#include "worker/numerics/models/eager_network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "worker/numerics/kernels/lane_sequence.h"
#include "worker/numerics/models/dropout_mask.h"

namespace chainfleet {
namespace {

// The output of a layer that has no parameters and treats images and flat inputs of all chains alike.
at::Tensor Output(const ReluLayer&, const at::Tensor& h) { return at::relu(h); }
at::Tensor Output(const GeluLayer&, const at::Tensor& h) { return at::gelu(h); }
at::Tensor Output(const SiluLayer&, const at::Tensor& h) { return at::silu(h); }
at::Tensor Output(const TanhLayer&, const at::Tensor& h) { return at::tanh(h); }
at::Tensor Output(const SoftplusLayer&, const at::Tensor& h) { return at::softplus(h); }
at::Tensor Output(const LeakyReluLayer& leaky, const at::Tensor& h) { return at::leaky_relu(h, leaky.slope); }

at::Tensor Output(const MaxPoolLayer& pool, const at::Tensor& h) {
  return at::max_pool2d(h, pool.size, pool.stride.value_or(pool.size), pool.padding);
}
at::Tensor Output(const AvgPoolLayer& pool, const at::Tensor& h) {
  return at::avg_pool2d(h, pool.size, pool.stride.value_or(pool.size));
}

// Activations are [n, C * channels, height, width] while they are images, [C, n, length, width] while they are
// sequences, else [C, n, features].
//
// The tensors of layers, and what several layers do with them.
class Layers {
 public:
  Layers(const std::vector<at::Tensor>& parameters, int64_t chains, const ForwardMode& mode)
      : parameters_(parameters), chains_(chains), mode_(mode) {}

 protected:
  static bool IsImage(const PlacedLayer& layer) { return layer.input.size() == 3; }

  // Tensor `i` of a layer, flattened over all chains' channels.
  at::Tensor PerChannel(const PlacedLayer& layer, size_t i) const { return parameters_[layer.parameter + i].flatten(); }
  // As PerChannel, shaped to broadcast over an image.
  at::Tensor BesideImage(const PlacedLayer& layer, size_t i) const { return PerChannel(layer, i).view({1, -1, 1, 1}); }

  at::Tensor Tapped(const PlacedLayer& layer, const at::Tensor& input, at::Tensor output) const {
    if (mode_.taps != nullptr) mode_.taps->push_back({&layer, input, output});
    return output;
  }

  at::Tensor Flat(const PlacedLayer& layer, const at::Tensor& h) const {
    if (IsSequence(layer.input)) return h.flatten(2);
    if (!IsImage(layer)) return h;
    return h.reshape({h.size(0), chains_, -1}).transpose(0, 1);
  }

  // Returns `output` of a layer with input `input`, and traces it if requested.
  at::Tensor Traced(const PlacedLayer& layer, const at::Tensor& input, const at::Tensor& output) const {
    if (mode_.traces == nullptr) return output;
    output.retain_grad();
    mode_.traces->push_back({&layer, input.detach(), output, {}});
    return output;
  }

  // Weight `i` of the layer, [C, outputs, ...], and the bias after it, applied to the last axis of x [C, n, features]
  // or [C, n, length, width].
  at::Tensor Product(const PlacedLayer& layer, size_t i, bool bias, const at::Tensor& x) const {
    const at::Tensor weight = parameters_[layer.parameter + i].flatten(2).transpose(1, 2), rows = x.flatten(1, -2);
    const at::Tensor y =
        Tapped(layer, rows,
               bias ? at::baddbmm(parameters_[layer.parameter + i + 1].unsqueeze(1), rows, weight) : rows.bmm(weight));
    return Traced(layer, x, x.dim() == 3 ? y : y.unflatten(1, {x.size(1), x.size(2)}));
  }

  at::Tensor Normalise(const BatchNormLayer& norm, const PlacedLayer& layer, const at::Tensor& x) const {
    const at::Tensor scale = PerChannel(layer, 0), shift = PerChannel(layer, 1);
    if (mode_.statistics != nullptr) {
      const at::Tensor mean = (*mode_.statistics)[layer.statistic].flatten();
      const at::Tensor variance = (*mode_.statistics)[layer.statistic + 1].flatten();
      return at::batch_norm(x, scale, shift, mean, variance, false, 0, norm.epsilon, true);
    }
    at::Tensor mean, variance;
    if (mode_.batch_statistics != nullptr) {
      // With a momentum of 1 the running values are the minibatch's own.
      mean = at::zeros({x.size(1)}, x.options());
      variance = at::zeros({x.size(1)}, x.options());
    }
    const at::Tensor y = at::batch_norm(x, scale, shift, mean, variance, true, 1, norm.epsilon, true);
    if (mode_.batch_statistics != nullptr) {
      if (x.numel() == x.size(1)) variance.zero_();  // one value per channel has no variance
      mode_.batch_statistics->push_back(mean.view({chains_, -1}));
      mode_.batch_statistics->push_back(variance.view({chains_, -1}));
    }
    return y;
  }

  // The first `count` tensors of a norm, [C, channels] each, shaped to broadcast over the activation; where traced, one
  // copy for each example.
  std::vector<at::Tensor> ForExamples(const PlacedLayer& layer, const at::Tensor& h, size_t count) const {
    const bool image = IsImage(layer);
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < count; ++i) {
      at::Tensor beside = image ? BesideImage(layer, i) : parameters_[layer.parameter + i].unsqueeze(1);
      // One for all positions.
      if (h.dim() > beside.dim()) beside = beside.unsqueeze(1);
      if (mode_.traces != nullptr) {
        std::vector<int64_t> sizes(beside.dim(), -1);
        sizes[image ? 0 : 1] = h.size(image ? 0 : 1);
        beside = beside.expand(sizes);
        beside.retain_grad();
      }
      tensors.push_back(beside);
    }
    if (mode_.traces != nullptr) mode_.traces->push_back({&layer, {}, {}, tensors});
    return tensors;
  }

  const std::vector<at::Tensor>& parameters_;
  const int64_t chains_;
  const ForwardMode& mode_;
};

// Computes the layers.
class Pass : public Layers {
 public:
  using Layers::Layers;

  at::Tensor Run(const std::vector<PlacedLayer>& layers, at::Tensor h) {
    for (const PlacedLayer& layer : layers) {
      h = std::visit([&](const auto& kind) { return Apply(kind, layer, h); }, layer.kind);
    }
    return h;
  }

 private:
  at::Tensor Apply(const ConvLayer& conv, const PlacedLayer& layer, const at::Tensor& h) const {
    const at::Tensor weight = parameters_[layer.parameter].flatten(0, 1);
    const at::Tensor bias = conv.bias ? PerChannel(layer, 1) : at::Tensor();
    return Tapped(layer, h,
                  Traced(layer, h, at::conv2d(h, weight, bias, conv.stride, conv.padding, 1, chains_ * conv.groups)));
  }

  at::Tensor Apply(const LinearLayer& linear, const PlacedLayer& layer, const at::Tensor& h) const {
    return Product(layer, 0, linear.bias, IsSequence(layer.input) ? h : Flat(layer, h));
  }

  at::Tensor Apply(const EmbeddingLayer& embedding, const PlacedLayer& layer, const at::Tensor& h) {
    const at::Tensor x = h.detach(), known = x.eq(x.round()).logical_and(x >= 0).logical_and(x < embedding.count);
    // A GPU would finish all earlier steps to answer. There, the vector of such an index is NaN.
    TORCH_CHECK_VALUE(h.is_cuda() || known.all().item<bool>(), "the network takes indices from 0 to ",
                      embedding.count - 1, ", but the inputs have others");
    const at::Tensor index = x.masked_fill(known.logical_not(), 0).to(at::kLong);
    if (embedding.padding) padding_ = index == *embedding.padding;
    const at::Tensor first = at::arange(chains_, index.options()).view({-1, 1, 1}) * embedding.count;
    const at::Tensor y = at::embedding(parameters_[layer.parameter].flatten(0, 1), index + first);
    return Traced(layer, index, h.is_cuda() ? y.masked_fill(known.logical_not().unsqueeze(3), std::nan("")) : y);
  }

  at::Tensor Apply(const ToSequenceLayer&, const PlacedLayer& layer, const at::Tensor& h) const {
    if (!IsImage(layer)) return h.unflatten(2, layer.output);
    return h.unflatten(1, {chains_, -1}).flatten(3).permute({1, 0, 3, 2});
  }

  at::Tensor Apply(const PositionLayer&, const PlacedLayer& layer, const at::Tensor& h) const {
    return h + ForExamples(layer, h, 1)[0];
  }

  at::Tensor Apply(const AttentionLayer& attention, const PlacedLayer& layer, const at::Tensor& h) const {
    // [3, C, n, heads, length, width / heads]
    const at::Tensor parts =
        Product(layer, 0, true, h).unflatten(3, {3, attention.heads, -1}).permute({3, 0, 1, 4, 2, 5});
    const double scale = 1 / std::sqrt(static_cast<double>(parts.size(5)));
    at::Tensor scores = (parts[0] * scale).matmul(parts[1].transpose(-1, -2));
    if (layer.padded) scores = scores.masked_fill(padding_.unsqueeze(2).unsqueeze(3), kHiddenScore);
    return Product(layer, 2, true, scores.softmax(-1).matmul(parts[2]).transpose(2, 3).flatten(3));
  }

  // A window is a run of whole positions; the weight has its axes as [channels, positions].
  at::Tensor Apply(const Conv1dLayer& conv, const PlacedLayer& layer, const at::Tensor& h) const {
    const at::Tensor windows =
        at::constant_pad_nd(h, {0, 0, conv.padding, conv.padding}).unfold(2, conv.kernel, conv.stride);
    return Product(layer, 0, conv.bias, windows.flatten(3));
  }

  at::Tensor Apply(const BatchNormLayer& norm, const PlacedLayer& layer, const at::Tensor& h) const {
    // Over [n, C * channels], so that a chain never uses another chain's channels.
    const at::Tensor x = IsImage(layer) ? h : h.transpose(0, 1).reshape({h.size(1), -1});
    const at::Tensor y = Normalise(norm, layer, x);
    return IsImage(layer) ? y : y.view({h.size(1), chains_, -1}).transpose(0, 1);
  }

  at::Tensor Apply(const LayerNormLayer& norm, const PlacedLayer& layer, const at::Tensor& h) const {
    const std::vector<at::Tensor> scale_shift = ForExamples(layer, h, 2);
    return at::addcmul(scale_shift[1], at::layer_norm(h, {h.size(-1)}, {}, {}, norm.epsilon), scale_shift[0]);
  }

  at::Tensor Apply(const GroupNormLayer& norm, const PlacedLayer& layer, const at::Tensor& h) const {
    const std::vector<at::Tensor> scale_shift = ForExamples(layer, h, 2);
    const at::Tensor y = at::group_norm(h, chains_ * norm.groups, {}, {}, norm.epsilon);
    return at::addcmul(scale_shift[1], y, scale_shift[0]);
  }

  at::Tensor Apply(const FrnLayer& norm, const PlacedLayer& layer, const at::Tensor& h) const {
    const std::vector<at::Tensor> scale_shift_threshold = ForExamples(layer, h, norm.threshold ? 3 : 2);
    const at::Tensor inverse = at::rsqrt(h.square().mean({2, 3}, /*keepdim=*/true) + norm.epsilon);
    const at::Tensor y = at::addcmul(scale_shift_threshold[1], h, inverse * scale_shift_threshold[0]);
    return norm.threshold ? at::maximum(y, scale_shift_threshold[2]) : y;
  }

  template <typename Kind>
  requires requires(const Kind& kind, const at::Tensor& h) { Output(kind, h); }
  at::Tensor Apply(const Kind& kind, const PlacedLayer&, const at::Tensor& h) const { return Output(kind, h); }

  at::Tensor Apply(const GlobalAvgPoolLayer&, const PlacedLayer& layer, const at::Tensor& h) const {
    if (layer.padded) {
      const at::Tensor counted = padding_.logical_not().unsqueeze(3).to(h.options());
      return (h * counted).sum(2) / counted.sum(2).clamp_min(1);
    }
    if (IsSequence(layer.input)) return h.mean(2);
    return h.mean({2, 3}).view({h.size(0), chains_, -1}).transpose(0, 1);
  }

  at::Tensor Apply(const FlattenLayer&, const PlacedLayer& layer, const at::Tensor& h) const { return Flat(layer, h); }

  at::Tensor Apply(const DropoutLayer& drop, const PlacedLayer& layer, const at::Tensor& h) {
    if (mode_.dropout == nullptr || drop.rate == 0) return h;
    const int64_t images = IsImage(layer) ? h.size(0) : h.size(1);
    const at::Tensor mask =
        DropoutMask(drop.rate, mode_.dropout, chains_, images * NumValues(layer.input), h, &dropout_blocks_);
    if (!IsImage(layer)) return h * mask.view(h.sizes());
    return h * mask.view({chains_, images, -1}).transpose(0, 1).reshape(h.sizes());
  }

  at::Tensor Apply(const ResidualLayer&, const PlacedLayer& layer, const at::Tensor& h) {
    const at::Tensor branch = Run(layer.branch, h);
    return branch + Run(layer.shortcut, h);
  }

  at::Tensor Apply(const ConcatLayer&, const PlacedLayer& layer, const at::Tensor& h) {
    const at::Tensor branch = Run(layer.branch, h);
    if (!IsImage(layer)) return at::cat({h, branch}, 2);
    if (chains_ == 1) return at::cat({h, branch}, 1);
    const auto by_chain = [&](const at::Tensor& t) { return t.unflatten(1, {chains_, -1}); };
    return at::cat({by_chain(h), by_chain(branch)}, 2).flatten(1, 2);
  }

  at::Tensor padding_;           // [C, n, length], true where the embedding's index is its padding
  uint32_t dropout_blocks_ = 0;  // used by the layers so far
};

}  // namespace

at::Tensor EagerLogits(const NetworkShape& network, const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                       const ForwardMode& mode) {
  const int64_t chains = x.size(0), images = x.size(1);
  const std::vector<int64_t>& shape = network.input_shape;
  const at::Tensor h = shape.size() == 3 ? x.transpose(0, 1).reshape({images, chains * shape[0], shape[1], shape[2]})
                                         : x.reshape({chains, images, -1});
  return Pass(parameters, chains, mode).Run(network.layers, h);
}

}  // namespace chainfleet
