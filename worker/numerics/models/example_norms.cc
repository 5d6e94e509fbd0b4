#include "worker/numerics/models/example_norms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "core/base/check.h"

namespace chainfleet {
namespace {

// Sums of squares over all but the first two dimensions, in double.
at::Tensor SquareSums(const at::Tensor& x) { return x.square().flatten(2).sum(2).to(at::kDouble); }

at::Tensor Norms(const LinearLayer& linear, const LayerTrace& trace, int64_t) {
  return SquareSums(trace.output.grad()) * (SquareSums(trace.input) + (linear.bias ? 1 : 0));
}

at::Tensor Norms(const ConvLayer& conv, const LayerTrace& trace, int64_t chains) {
  const at::Tensor gradient = trace.output.grad();
  const int64_t groups = chains * conv.groups;
  std::vector<at::Tensor> of_example;
  for (int64_t i = 0; i < gradient.size(0); ++i) {
    const at::Tensor windows = at::im2col(trace.input.narrow(0, i, 1), {conv.kernel, conv.kernel}, {1, 1},
                                          {conv.padding, conv.padding}, {conv.stride, conv.stride});
    const at::Tensor pixels = windows.view({groups, -1, windows.size(2)});  // [groups, inputs of a window, pixels]
    const at::Tensor product = gradient[i].reshape({groups, -1, windows.size(2)}).bmm(pixels.transpose(1, 2));
    of_example.push_back(product.view({chains, -1}).square().sum(1));
  }
  at::Tensor squares = at::stack(of_example, 1).to(at::kDouble);
  if (!conv.bias) return squares;
  const at::Tensor of_bias = gradient.sum({2, 3}).view({gradient.size(0), chains, -1}).transpose(0, 1);
  return squares + SquareSums(of_bias);
}

at::Tensor Norms(const FrnLayer&, const LayerTrace& trace, int64_t chains) {
  at::Tensor squares;
  for (const at::Tensor& parameter : trace.of_example) {
    const at::Tensor gradient = parameter.grad();
    const at::Tensor part = SquareSums(gradient.reshape({gradient.size(0), chains, -1}).transpose(0, 1));
    squares = squares.defined() ? squares + part : part;
  }
  return squares;
}

}  // namespace

at::Tensor SquaredExampleNorms(const LayerTrace& trace, int64_t chains) {
  return std::visit(
      [&](const auto& kind) {
        if constexpr (requires { Norms(kind, trace, chains); }) return Norms(kind, trace, chains);
        CHAINFLEET_CHECK(false) << "layer " << trace.layer->name << " has no norms by example";
        return at::Tensor();
      },
      trace.layer->kind);
}

}  // namespace chainfleet
