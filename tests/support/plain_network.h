// Runs a list of layers the plain way: one network, one layer after the other, in double precision, with the formulas
// of the papers. The slow reference for the batched path.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/layer_spec.h"

namespace chainfleet::testing {

struct PlainNetwork {
  // Parameter tensors in layout order, each with its own shape; consumed from the front.
  std::vector<at::Tensor> parameters;
  // Empty: batch norm uses the batch, and appends its means and unbiased variances to `seen`. Else it uses these.
  std::vector<at::Tensor> statistics;
  std::vector<at::Tensor> seen;

  // Returns logits [n, K] of x [n, input_shape...].
  at::Tensor Logits(const LayerList& layers, const at::Tensor& x);

 private:
  at::Tensor Run(const LayerList& layers, at::Tensor h);
  at::Tensor Apply(const LayerSpec& layer, const at::Tensor& h);
  at::Tensor BatchNorm(const BatchNormLayer& norm, const at::Tensor& h);
  at::Tensor Frn(const FrnLayer& norm, const at::Tensor& h);
  at::Tensor GroupNorm(int64_t groups, double epsilon, const at::Tensor& h);
  at::Tensor Attention(int64_t heads, const at::Tensor& h);
  at::Tensor Embedding(const EmbeddingLayer& embedding, const at::Tensor& h);
  at::Tensor Conv1d(const Conv1dLayer& conv, const at::Tensor& h);
  at::Tensor Mean(const at::Tensor& h) const;
  at::Tensor Next();
  at::Tensor counted_;  // [n, length], 0 at padding; undefined: all positions count
  size_t next_parameter_ = 0, next_statistic_ = 0;
};

}  // namespace chainfleet::testing
