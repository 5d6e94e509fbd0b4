#include "worker/numerics/models/example_norms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/base/check.h"

namespace chainfleet {
namespace {

// Sums of squares over all but the first two dimensions, in double.
at::Tensor SquareSums(const at::Tensor& x) { return x.square().flatten(2).sum(2).to(at::kDouble); }

// Sums d_p . d_q inner[p, q] over pairs of positions, d the gradient [C, n, length, outputs].
at::Tensor SumOfPairs(const at::Tensor& gradient, const at::Tensor& inner) {
  return (gradient.matmul(gradient.transpose(2, 3)) * inner).flatten(2).sum(2).to(at::kDouble);
}

// The gradient of an example is a product of the gradient of the output and the input, summed over positions.
at::Tensor OfProduct(const LayerTrace& trace, bool bias) {
  const at::Tensor gradient = trace.output.grad();
  if (gradient.dim() == 3) return SquareSums(gradient) * (SquareSums(trace.input) + (bias ? 1 : 0));
  const at::Tensor& input = trace.input;  // [C, n, length, inputs]
  const int64_t length = input.size(2);
  if (length * length < input.size(3) * gradient.size(3)) {  // smaller than the product
    const at::Tensor inner = input.matmul(input.transpose(2, 3)) + static_cast<int>(bias);
    return SumOfPairs(gradient, inner);
  }
  const at::Tensor squares = SquareSums(gradient.transpose(2, 3).matmul(input));
  return bias ? squares + SquareSums(gradient.sum(2)) : squares;
}

at::Tensor Norms(const LinearLayer& linear, const LayerTrace& trace, int64_t) { return OfProduct(trace, linear.bias); }
at::Tensor Norms(const Conv1dLayer& conv, const LayerTrace& trace, int64_t) { return OfProduct(trace, conv.bias); }
at::Tensor Norms(const AttentionLayer&, const LayerTrace& trace, int64_t) { return OfProduct(trace, true); }

// Positions with the same index add up in one vector of the table.
at::Tensor Norms(const EmbeddingLayer&, const LayerTrace& trace, int64_t) {
  return SumOfPairs(trace.output.grad(), trace.input.unsqueeze(3) == trace.input.unsqueeze(2));
}

// The number of examples that a GPU processes in one product, limited by the size of their windows and of the product.
int64_t ExamplesAtOnce(const ConvLayer& conv, const LayerTrace& trace, int64_t groups) {
  constexpr int64_t kMostFloats = int64_t{1} << 26;
  const at::Tensor& output = trace.output;
  const int64_t inputs = trace.input.size(1) * conv.kernel * conv.kernel, pixels = output.size(2) * output.size(3);
  return std::max<int64_t>(1, kMostFloats / (inputs * pixels + output.size(1) * inputs / groups));
}

at::Tensor Norms(const ConvLayer& conv, const LayerTrace& trace, int64_t chains) {
  const at::Tensor gradient = trace.output.grad();
  const int64_t groups = chains * conv.groups;
  const int64_t examples = gradient.size(0), at_once = gradient.is_cuda() ? ExamplesAtOnce(conv, trace, groups) : 1;
  std::vector<at::Tensor> of_examples;
  for (int64_t i = 0; i < examples; i += at_once) {
    const int64_t some = std::min(at_once, examples - i);
    const at::Tensor windows = at::im2col(trace.input.narrow(0, i, some), {conv.kernel, conv.kernel}, {1, 1},
                                          {conv.padding, conv.padding}, {conv.stride, conv.stride});
    const int64_t pixels = windows.size(2);
    const at::Tensor of_output = gradient.narrow(0, i, some).reshape({some * groups, -1, pixels});
    const at::Tensor product = of_output.bmm(windows.view({some * groups, -1, pixels}).transpose(1, 2));
    of_examples.push_back(product.view({some * chains, -1}).square().sum(1).view({some, chains}));
  }
  at::Tensor squares = at::cat(of_examples).t().to(at::kDouble);
  if (!conv.bias) return squares;
  const at::Tensor of_bias = gradient.sum({2, 3}).view({gradient.size(0), chains, -1}).transpose(0, 1);
  return squares + SquareSums(of_bias);
}

// Sums squared gradients of a norm's parameters, which the trace holds once for each example.
at::Tensor OfParameters(const LayerTrace& trace, int64_t chains) {
  at::Tensor squares;
  for (const at::Tensor& parameter : trace.of_example) {
    at::Tensor gradient = parameter.grad();
    if (trace.layer->input.size() == 3) gradient = gradient.reshape({gradient.size(0), chains, -1}).transpose(0, 1);
    const at::Tensor part = SquareSums(gradient);
    squares = squares.defined() ? squares + part : part;
  }
  return squares;
}

}  // namespace

at::Tensor SquaredExampleNorms(const LayerTrace& trace, int64_t chains) {
  if (!trace.of_example.empty()) return OfParameters(trace, chains);
  return std::visit(
      [&](const auto& kind) {
        if constexpr (requires { Norms(kind, trace, chains); }) return Norms(kind, trace, chains);
        CHAINFLEET_CHECK(false) << "layer " << trace.layer->name << " has no norms by example";
        return at::Tensor();
      },
      trace.layer->kind);
}

}  // namespace chainfleet
