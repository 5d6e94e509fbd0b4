// A list of layers run the plain way: one network, one layer after the other, in double precision, each formula as it
// stands in its paper. The slow reference beside the batched path.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/domain/layer_spec.h"

namespace chainfleet::testing {

struct PlainNetwork {
  // Parameter tensors in layout order, each of its own shape; consumed from the front.
  std::vector<at::Tensor> parameters;
  // Empty: batch norm by the batch, whose means and unbiased variances are appended to `seen`. Else it uses these.
  std::vector<at::Tensor> statistics;
  std::vector<at::Tensor> seen;

  // Logits [n, K] of x [n, input_shape...].
  at::Tensor Logits(const LayerList& layers, const at::Tensor& x);

 private:
  at::Tensor Run(const LayerList& layers, at::Tensor h);
  at::Tensor Apply(const LayerSpec& layer, const at::Tensor& h);
  at::Tensor BatchNorm(const BatchNormLayer& norm, const at::Tensor& h);
  at::Tensor Frn(const FrnLayer& norm, const at::Tensor& h);
  at::Tensor Next();
  size_t next_parameter_ = 0, next_statistic_ = 0;
};

}  // namespace chainfleet::testing
