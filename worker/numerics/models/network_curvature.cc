#include "worker/numerics/models/network_curvature.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>

#include "worker/numerics/models/eager_network.h"

namespace chainfleet {
namespace {

// For each column in turn, calls `see` with the gradients, with respect to `inputs`, of the column times the outputs
// [n, K].
void ForEachColumn(const Likelihood& likelihood, const at::Tensor& outputs, const std::vector<at::Tensor>& inputs,
                   const std::function<void(const std::vector<at::Tensor>& gradients)>& see) {
  const int64_t columns = outputs.size(1);
  for (int64_t k = 0; k < columns; ++k) {
    const at::Tensor column = likelihood.FisherColumn(outputs.detach(), k);
    // A module may have parameters that it does not use.
    see(torch::autograd::grad({outputs}, inputs, {column}, /*retain_graph=*/k + 1 < columns, /*create_graph=*/false,
                              /*allow_unused=*/true));
  }
}

// [rows, features] of a layer's images [n, channels, height, width] or vectors [1, n, features].
at::Tensor Rows(const at::Tensor& h) {
  return h.dim() == 4 ? h.permute({0, 2, 3, 1}).reshape({-1, h.size(1)}) : h.squeeze(0);
}

at::Tensor Gram(const at::Tensor& rows) { return rows.t().matmul(rows).to(at::kDouble); }

// [rows, inputs] that the weight multiplies: windows of images, and 1 for the bias.
at::Tensor InputsOf(const LayerTap& tap, bool bias) {
  at::Tensor rows;
  if (const auto* conv = std::get_if<ConvLayer>(&tap.layer->kind)) {
    const std::vector<int64_t> kernel(2, conv->kernel), padding(2, conv->padding), stride(2, conv->stride);
    rows = at::im2col(tap.input, kernel, {1, 1}, padding, stride).transpose(1, 2).flatten(0, 1);
  } else {
    rows = tap.input.squeeze(0);
  }
  return bias ? at::cat({rows, at::ones({rows.size(0), 1}, rows.options())}, 1) : rows;
}

bool HasBias(const PlacedLayer& layer) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.bias; }) return kind.bias;
        return false;
      },
      layer.kind);
}

void AddKronecker(const NetworkShape& network, const Likelihood& likelihood, const std::vector<at::Tensor>& parameters,
                  const at::Tensor& x, Curvature* sum) {
  std::vector<LayerTap> taps;
  // The graph exists only for x: the gradients of the weights are not needed.
  const at::Tensor network_outputs =
      EagerLogits(network, parameters, x.detach().requires_grad_(true), {.taps = &taps}).squeeze(0);
  sum->layers.resize(taps.size());
  std::vector<at::Tensor> outputs;
  for (size_t l = 0; l < taps.size(); ++l) {
    Curvature::Layer& layer = sum->layers[l];
    layer.weight = static_cast<int64_t>(taps[l].layer->parameter);
    layer.bias = HasBias(*taps[l].layer);
    const at::Tensor rows = InputsOf(taps[l], layer.bias).detach();
    layer.positions += static_cast<double>(rows.size(0));
    AddTo(&layer.inputs, Gram(rows));
    outputs.push_back(taps[l].output);
  }
  ForEachColumn(likelihood, network_outputs, outputs, [&](const std::vector<at::Tensor>& gradients) {
    for (size_t l = 0; l < taps.size(); ++l) AddTo(&sum->layers[l].outputs, Gram(Rows(gradients[l])));
  });
}

// Adds those of the gradients of examples that have leaves of their own; outputs: [count, K].
void AddOuterProducts(const Likelihood& likelihood, at::Tensor outputs, const std::vector<at::Tensor>& leaves,
                      Curvature* sum) {
  if (likelihood.has_log_variance()) outputs = at::cat({outputs, leaves.back()}, 1);
  ForEachColumn(likelihood, outputs, leaves, [&](const std::vector<at::Tensor>& gradients) {
    std::vector<at::Tensor> flat;
    for (size_t k = 0; k < leaves.size(); ++k) {
      flat.push_back((gradients[k].defined() ? gradients[k] : at::zeros_like(leaves[k])).flatten(1));
    }
    const at::Tensor rows = at::cat(flat, 1);  // [count, D]
    if (sum->structure == CurvatureStructure::kFull) {
      const at::Tensor wide = rows.to(at::kDouble);
      AddTo(&sum->full, wide.t().matmul(wide));
    } else {
      AddTo(&sum->diagonal, rows.square().sum(0, /*keepdim=*/false, at::kDouble));
    }
  });
}

void AddByExample(const NetworkShape& network, const Likelihood& likelihood, const std::vector<at::Tensor>& parameters,
                  const at::Tensor& x, Curvature* sum) {
  constexpr int64_t kGradientFloats = int64_t{16} << 20;
  const int64_t all = x.size(1), size = NumParameters(network.parameters);
  const int64_t most = std::clamp<int64_t>(kGradientFloats / size, 1, all);
  for (int64_t first = 0; first < all; first += most) {
    const int64_t count = std::min(most, all - first);
    const std::vector<at::Tensor> leaves = LeavesOfExamples(parameters, count);
    AddOuterProducts(likelihood, EagerLogits(network, leaves, x.narrow(1, first, count).transpose(0, 1)).squeeze(1),
                     leaves, sum);
  }
}

std::vector<at::Tensor> Detached(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> detached;
  for (const at::Tensor& parameter : parameters) detached.push_back(parameter.detach());
  return detached;
}

}  // namespace

void AddNetworkCurvature(const NetworkShape& network, const Likelihood& likelihood,
                         const std::vector<at::Tensor>& parameters, const at::Tensor& x, Curvature* sum) {
  const c10::AutoGradMode autograd(true);
  const std::vector<at::Tensor> detached = Detached(parameters);
  if (sum->structure == CurvatureStructure::kKronecker) return AddKronecker(network, likelihood, detached, x, sum);
  AddByExample(network, likelihood, detached, x, sum);
}

void AddStoredCurvature(const Likelihood& likelihood, const std::vector<at::Tensor>& parameters, int64_t count,
                        const OutputsOfExample& outputs_of, Curvature* sum) {
  const c10::AutoGradMode autograd(true);
  const std::vector<at::Tensor> leaves = LeavesOfExamples(parameters, 1);
  for (int64_t i = 0; i < count; ++i) AddOuterProducts(likelihood, outputs_of(leaves, i), leaves, sum);
}

}  // namespace chainfleet
