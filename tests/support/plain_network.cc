#include "tests/support/plain_network.h"

#include <ATen/ATen.h>

#include "core/base/check.h"

namespace chainfleet::testing {

at::Tensor PlainNetwork::Logits(const LayerList& layers, const at::Tensor& x) {
  next_parameter_ = next_statistic_ = 0;
  const at::Tensor logits = Run(layers, x);
  CHAINFLEET_CHECK(next_parameter_ == parameters.size()) << "parameters are left over";
  return logits;
}

at::Tensor PlainNetwork::Next() { return parameters.at(next_parameter_++); }

at::Tensor PlainNetwork::Run(const LayerList& layers, at::Tensor h) {
  for (const LayerSpec& layer : layers) h = Apply(layer, h);
  return h;
}

at::Tensor PlainNetwork::BatchNorm(const BatchNormLayer& norm, const at::Tensor& h) {
  const at::Tensor scale = Next(), shift = Next();
  const at::Tensor by_channel = h.transpose(0, 1).reshape({h.size(1), -1});  // [channels, values]
  at::Tensor mean = by_channel.mean(1), variance = by_channel.var(1, /*unbiased=*/false);
  if (statistics.empty()) {
    const double values = static_cast<double>(by_channel.size(1));
    seen.push_back(mean);
    seen.push_back(variance * (values / (values - 1)));
  } else {
    mean = statistics.at(next_statistic_++);
    variance = statistics.at(next_statistic_++);
  }
  std::vector<int64_t> beside(h.dim(), 1);
  beside[1] = -1;
  return (h - mean.view(beside)) / (variance.view(beside) + norm.epsilon).sqrt() * scale.view(beside) +
         shift.view(beside);
}

at::Tensor PlainNetwork::Frn(const FrnLayer& norm, const at::Tensor& h) {
  const at::Tensor scale = Next().view({-1, 1, 1}), shift = Next().view({-1, 1, 1});
  const at::Tensor nu2 = (h * h).mean({2, 3}, true);
  const at::Tensor y = scale * h / (nu2 + norm.epsilon).sqrt() + shift;
  return norm.threshold ? at::maximum(y, Next().view({-1, 1, 1})) : y;
}

at::Tensor PlainNetwork::GroupNorm(int64_t groups, double epsilon, const at::Tensor& h) {
  std::vector<int64_t> beside(h.dim() - 1, 1);
  beside[0] = -1;
  const at::Tensor scale = Next().view(beside), shift = Next().view(beside);
  const at::Tensor grouped = h.reshape({h.size(0), groups, -1});
  const at::Tensor centred = grouped - grouped.mean(2, true);
  return scale * (centred / (centred.square().mean(2, true) + epsilon).sqrt()).view(h.sizes()) + shift;
}

at::Tensor PlainNetwork::Apply(const LayerSpec& layer, const at::Tensor& h) {
  if (const auto* conv = std::get_if<ConvLayer>(&layer.kind)) {
    const at::Tensor weight = Next();
    return at::conv2d(h, weight, conv->bias ? Next() : at::Tensor(), conv->stride, conv->padding, 1, conv->groups);
  }
  if (const auto* linear = std::get_if<LinearLayer>(&layer.kind)) {
    const at::Tensor y = h.flatten(1).matmul(Next().t());
    return linear->bias ? y + Next() : y;
  }
  if (const auto* norm = std::get_if<BatchNormLayer>(&layer.kind)) return BatchNorm(*norm, h);
  if (const auto* norm = std::get_if<FrnLayer>(&layer.kind)) return Frn(*norm, h);
  if (const auto* norm = std::get_if<LayerNormLayer>(&layer.kind)) return GroupNorm(1, norm->epsilon, h);
  if (const auto* norm = std::get_if<GroupNormLayer>(&layer.kind)) return GroupNorm(norm->groups, norm->epsilon, h);
  if (std::holds_alternative<ReluLayer>(layer.kind)) return at::clamp_min(h, 0);
  if (std::holds_alternative<GeluLayer>(layer.kind)) return h * (1 + (h / std::sqrt(2.0)).erf()) / 2;
  if (std::holds_alternative<SiluLayer>(layer.kind)) return h / (1 + (-h).exp());
  if (std::holds_alternative<TanhLayer>(layer.kind)) return (h.exp() - (-h).exp()) / (h.exp() + (-h).exp());
  if (std::holds_alternative<SoftplusLayer>(layer.kind)) return (1 + h.exp()).log();
  if (const auto* leaky = std::get_if<LeakyReluLayer>(&layer.kind)) {
    return at::clamp_min(h, 0) + leaky->slope * at::clamp_max(h, 0);
  }
  if (const auto* pool = std::get_if<MaxPoolLayer>(&layer.kind)) {
    return at::max_pool2d(h, pool->size, pool->stride.value_or(pool->size), pool->padding);
  }
  if (const auto* pool = std::get_if<AvgPoolLayer>(&layer.kind)) {
    return at::avg_pool2d(h, pool->size, pool->stride.value_or(pool->size));
  }
  if (std::holds_alternative<GlobalAvgPoolLayer>(layer.kind)) return h.mean({2, 3});
  if (std::holds_alternative<FlattenLayer>(layer.kind)) return h.flatten(1);
  if (const auto* residual = std::get_if<ResidualLayer>(&layer.kind)) {
    const at::Tensor branch = Run(residual->branch, h);
    return Run(residual->shortcut, h) + branch;
  }
  if (const auto* concat = std::get_if<ConcatLayer>(&layer.kind)) return at::cat({h, Run(concat->branch, h)}, 1);
  return h;  // dropout is off
}

}  // namespace chainfleet::testing
