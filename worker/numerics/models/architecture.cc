#include "worker/numerics/models/architecture.h"

#include <functional>
#include <numeric>

namespace chainfleet {
namespace {

int64_t Product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> ParameterSizes(const Architecture& architecture) {
  std::vector<int64_t> sizes;
  for (const ConvShape& conv : architecture.convolutions) {
    sizes.insert(sizes.end(), {conv.num_weights(), conv.out_channels});
  }
  for (const DenseShape& dense : architecture.dense) {
    sizes.insert(sizes.end(), {dense.inputs * dense.outputs, dense.outputs});
  }
  return sizes;
}

}  // namespace

int64_t Architecture::input_size() const { return Product(input_shape); }

absl::StatusOr<Architecture> MakeArchitecture(const ModelSpec& model, const std::vector<int64_t>& input_shape,
                                              int64_t num_classes) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ParameterShape> parameters,
                              InferParameters(model, input_shape, num_classes));
  const auto* builtin = std::get_if<BuiltinModel>(&model.kind);
  if (builtin == nullptr)
    return absl::InvalidArgumentError("model: not a network; an analytic potential has no layers");
  Architecture architecture;
  if (builtin->name == "softmax_regression") {
    architecture = SoftmaxRegression(input_shape, num_classes);
  } else if (builtin->name == "mlp") {
    architecture = Mlp(input_shape, num_classes, builtin->hidden);
  } else if (builtin->name == "lenet5") {
    architecture = Lenet5(input_shape, num_classes);
  } else {
    return absl::InvalidArgumentError("model.builtin: this worker has no network called " + builtin->name);
  }
  std::vector<int64_t> sizes;
  for (const ParameterShape& parameter : parameters) sizes.push_back(Product(parameter.shape));
  if (sizes != ParameterSizes(architecture)) {
    return absl::InternalError(builtin->name + ": the inferred parameters are not those of its layers");
  }
  return architecture;
}

}  // namespace chainfleet
