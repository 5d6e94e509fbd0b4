#include "tests/support/plain_network.h"

#include <ATen/ATen.h>

#include "core/base/check.h"

namespace chainfleet::testing {

at::Tensor PlainNetwork::Logits(const LayerList& layers, const at::Tensor& x) {
  next_parameter_ = next_statistic_ = 0;
  counted_ = at::Tensor();
  const at::Tensor logits = Run(layers, x.dim() == 4 ? x : x.flatten(1));
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

// One query of one head of one example at a time.
at::Tensor PlainNetwork::Attention(int64_t heads, const at::Tensor& h) {
  const at::Tensor in_weight = Next(), in_bias = Next(), out_weight = Next(), out_bias = Next();
  const int64_t size = h.size(2) / heads;
  std::vector<at::Tensor> examples;
  for (int64_t e = 0; e < h.size(0); ++e) {
    const auto parts = (h[e].matmul(in_weight.t()) + in_bias).chunk(3, 1);  // queries, keys, values
    std::vector<at::Tensor> mixed;
    for (int64_t head = 0; head < heads; ++head) {
      const auto of_head = [&](const at::Tensor& part) { return part.narrow(1, head * size, size); };
      std::vector<at::Tensor> rows;
      for (int64_t i = 0; i < h.size(1); ++i) {
        at::Tensor weight = (of_head(parts[1]).mv(of_head(parts[0])[i]) / std::sqrt(static_cast<double>(size))).exp();
        if (counted_.defined() && counted_[e].sum().item<double>() > 0) weight = weight * counted_[e];
        if (counted_.defined() && counted_[e].sum().item<double>() == 0) weight = at::ones_like(weight);
        rows.push_back(of_head(parts[2]).t().mv(weight / weight.sum()));
      }
      mixed.push_back(at::stack(rows));
    }
    examples.push_back(at::cat(mixed, 1).matmul(out_weight.t()) + out_bias);
  }
  return at::stack(examples);
}

at::Tensor PlainNetwork::Embedding(const EmbeddingLayer& embedding, const at::Tensor& h) {
  if (embedding.padding) counted_ = (h != *embedding.padding).to(h.scalar_type());
  return at::one_hot(h.to(at::kLong), embedding.count).to(h.scalar_type()).matmul(Next());
}

at::Tensor PlainNetwork::Conv1d(const Conv1dLayer& conv, const at::Tensor& h) {
  const at::Tensor weight = Next();
  return at::conv1d(h.transpose(1, 2), weight, conv.bias ? Next() : at::Tensor(), conv.stride, conv.padding)
      .transpose(1, 2);
}

at::Tensor PlainNetwork::Mean(const at::Tensor& h) const {
  if (h.dim() == 4) return h.mean({2, 3});
  if (!counted_.defined()) return h.mean(1);
  return (h * counted_.unsqueeze(2)).sum(1) / at::clamp_min(counted_.sum(1, true), 1);
}

at::Tensor PlainNetwork::Apply(const LayerSpec& layer, const at::Tensor& h) {
  if (const auto* conv = std::get_if<ConvLayer>(&layer.kind)) {
    const at::Tensor weight = Next();
    return at::conv2d(h, weight, conv->bias ? Next() : at::Tensor(), conv->stride, conv->padding, 1, conv->groups);
  }
  if (const auto* linear = std::get_if<LinearLayer>(&layer.kind)) {
    const at::Tensor y = (h.dim() == 3 ? h : h.flatten(1)).matmul(Next().t());
    return linear->bias ? y + Next() : y;
  }
  if (const auto* norm = std::get_if<BatchNormLayer>(&layer.kind)) return BatchNorm(*norm, h);
  if (const auto* norm = std::get_if<FrnLayer>(&layer.kind)) return Frn(*norm, h);
  if (const auto* norm = std::get_if<LayerNormLayer>(&layer.kind)) {
    return h.dim() == 2 ? GroupNorm(1, norm->epsilon, h) : GroupNorm(1, norm->epsilon, h.flatten(0, 1)).view(h.sizes());
  }
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
  if (std::holds_alternative<GlobalAvgPoolLayer>(layer.kind)) return Mean(h);
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer.kind)) return Embedding(*embedding, h);
  if (const auto* sequence = std::get_if<ToSequenceLayer>(&layer.kind)) {
    return sequence->width ? h.reshape({h.size(0), -1, *sequence->width}) : h.flatten(2).transpose(1, 2);
  }
  if (std::holds_alternative<PositionLayer>(layer.kind)) return h + Next();
  if (const auto* attention = std::get_if<AttentionLayer>(&layer.kind)) return Attention(attention->heads, h);
  if (const auto* conv = std::get_if<Conv1dLayer>(&layer.kind)) return Conv1d(*conv, h);
  if (std::holds_alternative<FlattenLayer>(layer.kind)) return h.flatten(1);
  if (const auto* residual = std::get_if<ResidualLayer>(&layer.kind)) {
    const at::Tensor branch = Run(residual->branch, h);
    return Run(residual->shortcut, h) + branch;
  }
  if (const auto* concat = std::get_if<ConcatLayer>(&layer.kind)) return at::cat({h, Run(concat->branch, h)}, 1);
  return h;  // dropout is off
}

}  // namespace chainfleet::testing
