#include "core/domain/network_signature.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace chainfleet {
namespace {

constexpr char kFloat[] = "float32";

std::string Render(const TensorSignature& batch) {
  return absl::StrCat(batch.type, " [n", batch.shape.empty() ? "" : ", ", absl::StrJoin(batch.shape, ", "), "]");
}

bool Is(const TensorSignature& given, const std::vector<int64_t>& shape) {
  return given.type == kFloat && given.shape == shape;
}

}  // namespace

absl::StatusOr<std::vector<ParameterShape>> ParametersOf(const NetworkSignature& network,
                                                         const std::vector<int64_t>& input_shape, int64_t num_outputs,
                                                         const std::string& path) {
  const auto refused = [&](const std::string& why) { return InvalidFields({{path, why}}); };
  if (network.inputs.size() != 1 || !Is(network.inputs[0], input_shape)) {
    const auto render = [](std::string* text, const TensorSignature& input) { text->append(Render(input)); };
    return refused(absl::StrCat("the network takes ", absl::StrJoin(network.inputs, " and ", render),
                                ", the data set has ", Render({"", kFloat, input_shape})));
  }
  if (!Is(network.output, {num_outputs})) {
    return refused(absl::StrCat("the network gives ", Render(network.output), ", the likelihood needs ",
                                Render({"", kFloat, {num_outputs}})));
  }
  std::vector<ParameterShape> parameters;
  for (const TensorSignature& tensor : network.parameters) {
    if (tensor.type != kFloat || NumValues(tensor.shape) < 1) {
      return refused(absl::StrCat("parameter ", tensor.name, " is ", tensor.type, " [",
                                  absl::StrJoin(tensor.shape, ", "), "]; parameters are float32 and not empty"));
    }
    parameters.push_back({.name = tensor.name, .shape = tensor.shape, .offset = NumParameters(parameters)});
  }
  if (parameters.empty()) return refused("the network has no parameters to sample");
  return parameters;
}

}  // namespace chainfleet
