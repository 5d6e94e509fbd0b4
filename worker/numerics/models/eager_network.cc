#include "worker/numerics/models/eager_network.h"

#include <ATen/ops/baddbmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

namespace chainfleet {

at::Tensor EagerLogits(const Architecture& architecture, const std::vector<at::Tensor>& parameters,
                       const at::Tensor& x) {
  const int64_t chains = x.size(0), images = x.size(1);
  size_t next = 0;
  at::Tensor h = x.reshape({chains, images, -1});
  if (!architecture.convolutions.empty()) {
    int64_t padding = architecture.padding;
    h = x.transpose(0, 1).reshape({images, chains * x.size(2), x.size(3), x.size(4)});
    for (size_t l = 0; l < architecture.convolutions.size(); ++l, next += 2, padding = 0) {
      const at::Tensor weight = parameters[next].flatten(0, 1), bias = parameters[next + 1].flatten();
      h = at::max_pool2d(at::relu(at::conv2d(h, weight, bias, 1, padding, 1, chains)), 2);
    }
    h = h.reshape({images, chains, -1}).transpose(0, 1);
  }
  for (size_t l = 0; l < architecture.dense.size(); ++l, next += 2) {
    h = at::baddbmm(parameters[next + 1].unsqueeze(1), h, parameters[next].transpose(1, 2));
    if (l + 1 < architecture.dense.size()) h = at::relu(h);
  }
  return h;
}

}  // namespace chainfleet
