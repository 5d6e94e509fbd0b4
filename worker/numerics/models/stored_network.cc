#include "worker/numerics/models/stored_network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/remainder.h>
#include <c10/core/GradMode.h>

#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/utf8.h"
#include "worker/numerics/models/confined_network.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/exported_network.h"
#include "worker/numerics/models/model_file.h"
#include "worker/numerics/models/script_loading.h"
#include "worker/numerics/models/scripted_network.h"

namespace chainfleet {
namespace {

constexpr int64_t kTrialRows = 3;

std::string Render(at::IntArrayRef shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

int64_t FanIn(const at::Tensor& weight) { return weight.dim() >= 2 ? weight.numel() / weight.size(0) : 0; }

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor left = a.cpu().contiguous(), right = b.cpu().contiguous();
  return left.sizes() == right.sizes() && left.nbytes() == right.nbytes() &&
         std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

size_t HashOfBits(const at::Tensor& values) {
  const at::Tensor host = values.cpu().contiguous();
  return std::hash<std::string_view>()({static_cast<const char*>(host.const_data_ptr()), host.nbytes()});
}

// Trial inputs with values of both signs. With `changed` the last row differs.
at::Tensor TrialInputs(const StoredNetworkUse& use, bool changed) {
  std::vector<int64_t> shape = {kTrialRows};
  shape.insert(shape.end(), use.input_shape.begin(), use.input_shape.end());
  const int64_t size = NumValues(shape);
  at::Tensor x = at::remainder(at::arange(size, at::kFloat) * 0.618034, 2) - 1;
  if (changed) x.narrow(0, size - size / kTrialRows, size / kTrialRows).mul_(-0.5);
  return x.view(shape).to(use.device);
}

}  // namespace

at::Tensor LogitsOf(const NetworkShape& network, const StoredNetwork* script, const std::vector<at::Tensor>& parameters,
                    const at::Tensor& x, const ForwardMode& mode) {
  return script != nullptr ? script->Logits(parameters, x, mode) : EagerLogits(network, parameters, x, mode);
}

std::vector<at::Tensor> TensorsOfDraw(const std::vector<ParameterShape>& tensors, const at::Tensor& draw) {
  std::vector<at::Tensor> views;
  for (const ParameterShape& tensor : tensors) {
    std::vector<int64_t> shape = {1};
    shape.insert(shape.end(), tensor.shape.begin(), tensor.shape.end());
    views.push_back(draw.narrow(0, tensor.offset, NumValues(tensor.shape)).view(shape));
  }
  return views;
}

absl::StatusOr<NetworkShape> ShapeOfStored(const std::vector<std::string>& names, const std::vector<at::Tensor>& values,
                                           const StoredNetworkUse& use) {
  std::map<std::string, int64_t> fan_in;
  for (size_t k = 0; k < names.size(); ++k) fan_in[names[k]] = FanIn(values[k]);
  NetworkShape network{.input_shape = use.input_shape, .num_outputs = use.num_outputs};
  for (size_t k = 0; k < names.size(); ++k) {
    const at::Tensor& value = values[k];
    ParameterShape shape{.name = names[k], .shape = value.sizes().vec(), .offset = NumParameters(network.parameters)};
    if (value.scalar_type() != at::kFloat || value.numel() == 0) {
      return use.Refused(absl::StrCat("parameter ", shape.name, " is ", c10::toString(value.scalar_type()), " ",
                                      Render(value.sizes()), "; parameters are float32 and not empty"));
    }
    shape.fan_in = FanIn(value);
    if (shape.fan_in == 0 && shape.name.ends_with("bias")) {
      shape.fan_in = fan_in[shape.name.substr(0, shape.name.size() - 4) + "weight"];
    }
    shape.initial = static_cast<float>(value.mean(at::kDouble).item<double>());
    const at::Tensor on_host = value.detach().cpu().contiguous();
    shape.stored = {std::make_shared<at::Tensor>(on_host), on_host.const_data_ptr<float>()};
    network.parameters.push_back(std::move(shape));
  }
  if (names.empty()) return use.Refused("has no parameters to sample");
  const int64_t size = NumParameters(network.parameters);
  for (ParameterShape parameter : use.more) {
    parameter.offset += size;
    network.parameters.push_back(std::move(parameter));
  }
  std::set<std::string> known;
  for (const ParameterShape& parameter : network.parameters) {
    if (parameter.name != ValidUtf8(parameter.name)) return use.Refused("has a parameter whose name is not UTF-8");
    if (known.insert(parameter.name).second) continue;
    return use.Refused(absl::StrCat("has two parameters ", parameter.name, ", or one and the likelihood the other"));
  }
  return network;
}

absl::Status TryForward(const std::function<at::Tensor(const at::Tensor&)>& forward,
                        const std::vector<at::Tensor>& constants, const StoredNetworkUse& use) {
  const c10::AutoGradMode autograd(false);
  std::vector<size_t> before;
  std::vector<uint32_t> versions;  // LibTorch counts writes, also those that change nothing for these inputs
  for (const at::Tensor& constant : constants) {
    before.push_back(HashOfBits(constant));
    versions.push_back(constant._version());
  }
  const at::Tensor x = TrialInputs(use, false);
  const std::string question = absl::StrCat("forward of inputs ", Render(x.sizes()));
  const auto attempt = [&](const at::Tensor& inputs) {
    return TryStored(use.path, question + " fails", [&] { return forward(inputs); });
  };
  CHAINFLEET_ASSIGN_OR_RETURN(const at::Tensor logits, attempt(x));
  if (logits.scalar_type() != at::kFloat || logits.sizes() != at::IntArrayRef({kTrialRows, use.num_outputs})) {
    return use.Refused(absl::StrCat(question, " gives ", c10::toString(logits.scalar_type()), " ",
                                    Render(logits.sizes()), "; the likelihood needs float32 [n, ", use.num_outputs,
                                    "]"));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const at::Tensor again, attempt(x));
  if (!SameBits(logits, again))
    return use.Refused(question + " gives another answer the second time: it must draw no random numbers");
  CHAINFLEET_ASSIGN_OR_RETURN(const at::Tensor beside, attempt(TrialInputs(use, true)));
  if (!SameBits(logits.narrow(0, 0, kTrialRows - 1), beside.narrow(0, 0, kTrialRows - 1))) {
    return use.Refused(question + " mixes examples: the logits of one must not depend on the inputs of another");
  }
  for (size_t i = 0; i < constants.size(); ++i) {
    if (constants[i]._version() != versions[i] || HashOfBits(constants[i]) != before[i]) {
      return use.Refused(question + " changes a buffer or a parameter: they are constants here");
    }
  }
  return absl::OkStatus();
}

std::string LastLineOf(const std::string& message) {
  std::string last;
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    if (!absl::StripAsciiWhitespace(line).empty()) last = std::string(absl::StripAsciiWhitespace(line));
  }
  return last;
}

absl::StatusOr<std::shared_ptr<const StoredNetwork>> StoredNetworkOf(const ModelSpec& model, const ModelFile* module,
                                                                     const NetworkShape& network, at::Device device) {
  const auto* stored = std::get_if<StoredNetworkModel>(&model.kind);
  if (stored == nullptr) return nullptr;
  if (module == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("model ", stored->name, ": the plan comes without its file"));
  }
  const auto* exported = std::get_if<ExportedModel>(&module->content);
  if ((exported != nullptr) != (stored->format == ModelFormat::kExported)) {
    return InvalidFields({{PathOf(*stored), "the file has another format"}});
  }
  const std::vector<ParameterShape> more = ParametersOf(LikelihoodOf(model));
  if (exported != nullptr)
    return ExportedNetwork::Load(*exported, network.input_shape, network.num_outputs, device, more, model.sample);
  const auto& [bytes, processes] = std::get<ScriptFile>(module->content);
  if (processes == nullptr)
    return ScriptedNetwork::Load(*bytes, network.input_shape, network.num_outputs, device, more);
  return ConfinedNetwork::Load(processes, bytes, {kScriptPath, network.input_shape, network.num_outputs, device, more});
}

}  // namespace chainfleet
