#include "worker/numerics/models/exported_network.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/formats/exported_program.h"

namespace chainfleet {
namespace {

constexpr char kPath[] = "model.exported";

std::string Render(const ExportedSignature& input) {
  return absl::StrCat(NameOf(input.type), " [n", input.shape.empty() ? "" : ", ", absl::StrJoin(input.shape, ", "),
                      "]");
}

absl::Status CheckInput(const ExportedProgram& program, const StoredNetworkUse& use) {
  const ExportedSignature wanted{.type = ExportedType::kFloat, .shape = use.input_shape};
  if (program.inputs.size() == 1 && program.inputs[0].type == wanted.type && program.inputs[0].shape == wanted.shape) {
    return absl::OkStatus();
  }
  const auto render = [](std::string* text, const ExportedSignature& input) { text->append(Render(input)); };
  return use.Refused(absl::StrCat("the network takes ", absl::StrJoin(program.inputs, " and ", render),
                                  ", the data set has ", Render(wanted)));
}

// The bytes have the size that the shape says: ReadExportedProgram checks it.
at::Tensor TensorOf(const ExportedTensor& tensor, const std::string& bytes, at::Device device) {
  const at::Tensor made = EmptyFor(tensor);
  std::memcpy(made.mutable_data_ptr(), bytes.data(), std::min(bytes.size(), made.nbytes()));
  return made.to(device);
}

}  // namespace

ExportedNetwork::ExportedNetwork(NetworkShape shape, ExportedSteps steps, std::vector<at::Tensor> tensors,
                                 std::vector<size_t> parameters)
    : StoredNetwork(std::move(shape)),
      steps_(std::move(steps)),
      tensors_(std::move(tensors)),
      parameters_(std::move(parameters)) {}

absl::StatusOr<std::shared_ptr<const StoredNetwork>> ExportedNetwork::Load(const std::string& bytes,
                                                                           const std::vector<int64_t>& input_shape,
                                                                           int64_t num_outputs, at::Device device,
                                                                           const std::vector<ParameterShape>& more) {
  const StoredNetworkUse use{kPath, input_shape, num_outputs, device, more};
  const auto refused = [&](const absl::Status& status) { return use.Refused(std::string(status.message())); };
  const absl::StatusOr<ExportedProgram> program = ReadExportedProgram(bytes);
  if (!program.ok()) return refused(program.status());
  CHAINFLEET_RETURN_IF_ERROR(CheckInput(*program, use));
  absl::StatusOr<ExportedSteps> steps = ExportedSteps::Compile(*program, device);
  if (!steps.ok()) return refused(steps.status());
  const absl::StatusOr<std::vector<std::string>> content = ReadExportedTensors(bytes, *program);
  if (!content.ok()) return refused(content.status());

  std::vector<at::Tensor> tensors, values;
  std::vector<std::string> names;
  std::vector<size_t> parameters;
  for (size_t i = 0; i < content->size(); ++i) {
    tensors.push_back(TensorOf(program->tensors[i], (*content)[i], device));
    if (!program->tensors[i].is_parameter) continue;
    names.push_back(program->tensors[i].name);
    values.push_back(tensors.back());
    parameters.push_back(i);
  }
  CHAINFLEET_ASSIGN_OR_RETURN(NetworkShape shape, ShapeOfStored(names, values, use));
  std::shared_ptr<const ExportedNetwork> network(
      new ExportedNetwork(std::move(shape), *std::move(steps), tensors, std::move(parameters)));
  for (at::Tensor& value : values) value = value.unsqueeze(0);
  const auto forward = [&](const at::Tensor& x) { return network->Logits(values, x.unsqueeze(0)).squeeze(0); };
  CHAINFLEET_RETURN_IF_ERROR(TryForward(forward, tensors, use));
  return network;
}

at::Tensor ExportedNetwork::Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x) const {
  std::vector<at::Tensor> values = tensors_;
  for (size_t k = 0; k < parameters_.size(); ++k) values[parameters_[k]] = parameters[k].squeeze(0);
  values.push_back(x.squeeze(0));
  return steps_.Run(values).unsqueeze(0);
}

}  // namespace chainfleet
