#include "worker/numerics/models/example_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "worker/numerics/models/stored_network.h"

namespace chainfleet {
namespace {

std::vector<at::Tensor> ForEachExample(const std::vector<at::Tensor>& tensors, int64_t count) {
  std::vector<at::Tensor> repeated;
  for (const at::Tensor& tensor : tensors) {
    std::vector<int64_t> shape = tensor.sizes().vec();
    shape[0] = count;
    repeated.push_back(tensor.expand(shape));
  }
  return repeated;
}

// [m, D]: gradients of the sum of m examples' losses. Each example has its own leaves.
at::Tensor Gradients(const at::Tensor& losses, const std::vector<at::Tensor>& leaves) {
  std::vector<at::Tensor> flat = torch::autograd::grad({losses.sum()}, leaves, {}, /*retain_graph=*/{},
                                                       /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t k = 0; k < flat.size(); ++k) {
    // A module may have parameters that it does not use.
    flat[k] = (flat[k].defined() ? flat[k] : at::zeros_like(leaves[k])).flatten(1);
  }
  return at::cat(flat, 1);
}

}  // namespace

std::vector<at::Tensor> LeavesOfExamples(const std::vector<at::Tensor>& parameters, int64_t count) {
  std::vector<at::Tensor> leaves = ForEachExample(parameters, count);
  for (at::Tensor& leaf : leaves) leaf = leaf.detach().requires_grad_(true);
  return leaves;
}

at::Tensor ExampleGradients(const NetworkShape& network, const StoredNetwork* script, const Likelihood& likelihood,
                            const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& statistics,
                            const at::Tensor& x, const at::Tensor& targets) {
  const c10::AutoGradMode autograd(true);
  const auto gradients = [&](int64_t first, int64_t count) {
    const std::vector<at::Tensor> leaves = LeavesOfExamples(parameters, count);
    const std::vector<at::Tensor> of_norm = ForEachExample(statistics, count);
    const at::Tensor images = x.narrow(0, first, count).unsqueeze(1);
    const at::Tensor outputs = LogitsOf(network, script, leaves, images, {.statistics = &of_norm});
    const at::Tensor log_variance = likelihood.has_log_variance() ? leaves.back() : at::Tensor();
    return Gradients(likelihood.Losses(outputs, targets.narrow(0, first, count).unsqueeze(1), log_variance), leaves);
  };
  const int64_t all = x.size(0);
  if (script == nullptr) return gradients(0, all);
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < all; ++i) rows.push_back(gradients(i, 1));
  return at::cat(rows, 0);
}

at::Tensor StoredExampleNorms(const Likelihood& likelihood, const std::vector<at::Tensor>& parameters,
                              const at::Tensor& targets, const OutputsOfExample& outputs_of) {
  const c10::AutoGradMode autograd(true);
  const std::vector<at::Tensor> leaves = LeavesOfExamples(parameters, 1);
  const at::Tensor log_variance = likelihood.has_log_variance() ? leaves.back() : at::Tensor();
  std::vector<at::Tensor> squares;
  for (int64_t i = 0; i < targets.size(0); ++i) {
    const at::Tensor losses =
        likelihood.Losses(outputs_of(leaves, i).unsqueeze(0), targets.narrow(0, i, 1).unsqueeze(1), log_variance);
    squares.push_back(Gradients(losses, leaves).to(at::kDouble).square().sum(1));
  }
  return at::cat(squares);
}

}  // namespace chainfleet
