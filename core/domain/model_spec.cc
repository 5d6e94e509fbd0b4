#include "core/domain/model_spec.h"

#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace chainfleet {
namespace {

int64_t Product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Collects tensors in layout order.
class ParameterList {
 public:
  void AddLayer(const std::string& name, const std::vector<int64_t>& weight_shape) {
    const int64_t fan_in = Product(weight_shape) / weight_shape.front();
    Add(name + ".weight", weight_shape, fan_in);
    Add(name + ".bias", {weight_shape.front()}, fan_in);
  }
  void Add(const std::string& name, const std::vector<int64_t>& shape, int64_t fan_in) {
    parameters_.push_back({name, shape, offset_, fan_in});
    offset_ += Product(shape);
  }
  std::vector<ParameterShape> Take() { return std::move(parameters_); }

 private:
  std::vector<ParameterShape> parameters_;
  int64_t offset_ = 0;
};

absl::StatusOr<std::vector<ParameterShape>> InferLenet5(const std::vector<int64_t>& input_shape, int64_t num_classes) {
  // Two 5x5 convolutions (the first padded by 2), each before a 2x2 pool: the smallest side that leaves a pixel is 12.
  if (input_shape.size() != 3 || input_shape[1] < 12 || input_shape[2] < 12) {
    return InvalidFields(
        {{"model.builtin", absl::StrCat("lenet5 needs inputs [channels, height >= 12, width >= 12], the data set has [",
                                        absl::StrJoin(input_shape, ", "), "]")}});
  }
  const auto side = [](int64_t pixels) { return (pixels / 2 - 4) / 2; };
  ParameterList list;
  list.AddLayer("conv1", {6, input_shape[0], 5, 5});
  list.AddLayer("conv2", {16, 6, 5, 5});
  list.AddLayer("fc1", {120, 16 * side(input_shape[1]) * side(input_shape[2])});
  list.AddLayer("fc2", {84, 120});
  list.AddLayer("fc3", {num_classes, 84});
  return list.Take();
}

// Floats of one example's activations through the network, forward and backward, roughly.
int64_t ActivationFloats(const std::string& name, const std::vector<int64_t>& input_shape,
                         const std::vector<ParameterShape>& parameters) {
  int64_t floats = 2 * Product(input_shape);
  if (name == "lenet5") floats += 3 * 6 * input_shape[1] * input_shape[2];
  for (const ParameterShape& p : parameters) floats += p.shape.size() == 1 ? 3 * p.shape[0] : 0;
  return floats;
}

}  // namespace

absl::StatusOr<std::vector<ParameterShape>> InferParameters(const ModelSpec& model,
                                                            const std::vector<int64_t>& input_shape,
                                                            int64_t num_classes) {
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(Validate(model)));
  ParameterList list;
  if (const auto* gaussian = std::get_if<GaussianPotential>(&model.kind)) {
    list.Add("theta", {gaussian->dimension}, 0);
    return list.Take();
  }
  if (num_classes < 2 || input_shape.empty() || Product(input_shape) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a network needs inputs and at least 2 classes, the data set has inputs [",
                     absl::StrJoin(input_shape, ", "), "] and ", num_classes, " classes"));
  }
  const auto& builtin = std::get<BuiltinModel>(model.kind);
  if (builtin.name == "lenet5") return InferLenet5(input_shape, num_classes);
  int64_t width = Product(input_shape);
  if (builtin.name == "mlp") {
    int layer = 0;
    for (const int64_t hidden : builtin.hidden.empty() ? std::vector<int64_t>{200, 200} : builtin.hidden) {
      list.AddLayer(absl::StrCat("fc", ++layer), {hidden, width});
      width = hidden;
    }
    list.AddLayer(absl::StrCat("fc", ++layer), {num_classes, width});
  } else {
    list.AddLayer("fc", {num_classes, width});
  }
  return list.Take();
}

int64_t NumParameters(const std::vector<ParameterShape>& parameters) {
  return parameters.empty() ? 0 : parameters.back().offset + Product(parameters.back().shape);
}

int64_t EstimateChainBytes(const ModelSpec& model, const std::vector<int64_t>& input_shape, int64_t num_classes,
                           int64_t batch_size) {
  const auto parameters = InferParameters(model, input_shape, num_classes);
  if (!parameters.ok()) return 0;
  // theta, theta_a, gradient and one copy for a resume point.
  int64_t floats = 4 * NumParameters(*parameters);
  if (const auto* builtin = std::get_if<BuiltinModel>(&model.kind)) {
    floats += batch_size * ActivationFloats(builtin->name, input_shape, *parameters);
  }
  return floats * static_cast<int64_t>(sizeof(float));
}

std::vector<FieldViolation> Validate(const ModelSpec& model) {
  std::vector<FieldViolation> violations;
  if (const auto* gaussian = std::get_if<GaussianPotential>(&model.kind)) {
    if (gaussian->dimension < 1 || gaussian->dimension > int64_t{1} << 31) {
      violations.push_back(
          {"model.potential.gaussian.dimension", absl::StrCat("must be 1 to 2^31, is ", gaussian->dimension)});
    }
    if (!std::isfinite(gaussian->precision) || gaussian->precision <= 0) {
      violations.push_back(
          {"model.potential.gaussian.precision", absl::StrCat("must be finite and above 0, is ", gaussian->precision)});
    }
    return violations;
  }
  const auto& builtin = std::get<BuiltinModel>(model.kind);
  if (builtin.name != "softmax_regression" && builtin.name != "mlp" && builtin.name != "lenet5") {
    violations.push_back(
        {"model.builtin", absl::StrCat("unknown model \"", builtin.name, "\": use softmax_regression, mlp or lenet5")});
  }
  if (!builtin.hidden.empty() && builtin.name != "mlp") {
    violations.push_back({"model.hidden", absl::StrCat("is for mlp only, the model is ", builtin.name)});
  }
  for (size_t i = 0; i < builtin.hidden.size(); ++i) {
    if (builtin.hidden[i] < 1 || builtin.hidden[i] > 65536) {
      violations.push_back(
          {absl::StrCat("model.hidden[", i, "]"), absl::StrCat("must be 1 to 65536, is ", builtin.hidden[i])});
    }
  }
  return violations;
}

}  // namespace chainfleet
