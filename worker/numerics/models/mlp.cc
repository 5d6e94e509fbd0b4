#include "worker/numerics/models/architecture.h"

namespace chainfleet {
namespace {

Architecture DenseNetwork(const std::vector<int64_t>& input_shape, const std::vector<int64_t>& outputs) {
  Architecture network{.input_shape = input_shape};
  int64_t inputs = network.input_size();
  for (const int64_t width : outputs) {
    network.dense.push_back({inputs, width});
    inputs = width;
  }
  return network;
}

}  // namespace

Architecture SoftmaxRegression(const std::vector<int64_t>& input_shape, int64_t num_classes) {
  return DenseNetwork(input_shape, {num_classes});
}

Architecture Mlp(const std::vector<int64_t>& input_shape, int64_t num_classes, const std::vector<int64_t>& hidden) {
  std::vector<int64_t> outputs = hidden.empty() ? std::vector<int64_t>{200, 200} : hidden;
  outputs.push_back(num_classes);
  return DenseNetwork(input_shape, outputs);
}

}  // namespace chainfleet
