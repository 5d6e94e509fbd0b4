#include "worker/numerics/models/scripted_network.h"

#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/script.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/mutex.h"
#include "worker/numerics/models/script_loading.h"

namespace chainfleet {
namespace {

constexpr int64_t kTrialRows = 3;

std::string Render(at::IntArrayRef shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// The place of a parameter in a module.
struct Slot {
  torch::jit::Module owner;
  std::string name;
  size_t parameter;  // index of the parameter
};

// A module, and the slots for a chain's parameters.
struct Copy {
  torch::jit::Module module;
  std::vector<Slot> slots;
};

// The parameters of a module without repeats: tied tensors are one parameter with several slots.
struct Parameters {
  std::vector<std::string> names;
  std::vector<at::Tensor> values;
  std::vector<Slot> slots;
};

Parameters ParametersOf(const torch::jit::Module& module) {
  Parameters parameters;
  std::map<std::tuple<const void*, std::vector<int64_t>, std::vector<int64_t>>, size_t> known;
  for (const auto& part : module.named_modules()) {
    for (const auto& parameter : part.value.named_parameters(/*recurse=*/false)) {
      const at::Tensor& value = parameter.value;
      const auto [it, added] =
          known.try_emplace({value.const_data_ptr(), value.sizes().vec(), value.strides().vec()}, known.size());
      parameters.slots.push_back({part.value, parameter.name, it->second});
      if (!added) continue;
      parameters.names.push_back(part.name.empty() ? parameter.name : part.name + "." + parameter.name);
      parameters.values.push_back(value);
    }
  }
  return parameters;
}

int64_t FanIn(const at::Tensor& weight) { return weight.dim() >= 2 ? weight.numel() / weight.size(0) : 0; }

absl::StatusOr<std::vector<ParameterShape>> ShapesOf(const Parameters& parameters) {
  std::map<std::string, int64_t> fan_in;
  for (size_t k = 0; k < parameters.names.size(); ++k) fan_in[parameters.names[k]] = FanIn(parameters.values[k]);
  std::vector<ParameterShape> shapes;
  for (size_t k = 0; k < parameters.names.size(); ++k) {
    const at::Tensor& value = parameters.values[k];
    ParameterShape shape{.name = parameters.names[k], .shape = value.sizes().vec(), .offset = NumParameters(shapes)};
    if (value.scalar_type() != at::kFloat || value.numel() == 0) {
      return RefusedScript(absl::StrCat("parameter ", shape.name, " is ", c10::toString(value.scalar_type()), " ",
                                        Render(value.sizes()), "; parameters are float32 and not empty"));
    }
    shape.fan_in = FanIn(value);
    if (shape.fan_in == 0 && shape.name.ends_with("bias")) {
      shape.fan_in = fan_in[shape.name.substr(0, shape.name.size() - 4) + "weight"];
    }
    shape.initial = static_cast<float>(value.mean(at::kDouble).item<double>());
    shapes.push_back(std::move(shape));
  }
  if (shapes.empty()) return RefusedScript("has no parameters to sample");
  return shapes;
}

// Disables graph optimisation, which would change the graph, and so the bits, after some runs.
class Unoptimised {
 public:
  Unoptimised() : before_(torch::jit::getGraphExecutorOptimize()) { torch::jit::setGraphExecutorOptimize(false); }
  ~Unoptimised() { torch::jit::setGraphExecutorOptimize(before_); }

 private:
  const bool before_;
};

at::Tensor Run(Copy* copy, const at::Tensor& x) {
  const Unoptimised scope;
  return copy->module.forward({x}).toTensor();
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor left = a.cpu().contiguous(), right = b.cpu().contiguous();
  return left.sizes() == right.sizes() && left.nbytes() == right.nbytes() &&
         std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

// Trial inputs with values of both signs. With `changed` the last row differs.
at::Tensor TrialInputs(const std::vector<int64_t>& input_shape, bool changed, at::Device device) {
  std::vector<int64_t> shape = {kTrialRows};
  shape.insert(shape.end(), input_shape.begin(), input_shape.end());
  const int64_t size = NumValues(shape);
  at::Tensor x = torch::remainder(torch::arange(size, at::kFloat) * 0.618034, 2) - 1;
  if (changed) x.narrow(0, size - size / kTrialRows, size / kTrialRows).mul_(-0.5);
  return x.view(shape).to(device);
}

absl::Status CheckForward(Copy* copy, const std::vector<int64_t>& input_shape, int64_t num_outputs, at::Device device) {
  const c10::AutoGradMode autograd(false);
  std::vector<at::Tensor> buffers, before;
  for (const at::Tensor& buffer : copy->module.buffers()) {
    buffers.push_back(buffer);
    before.push_back(buffer.clone());
  }
  const at::Tensor x = TrialInputs(input_shape, false, device);
  const std::string question = absl::StrCat("forward of inputs ", Render(x.sizes()));
  CHAINFLEET_ASSIGN_OR_RETURN(const at::Tensor logits, TryScript(question + " fails", [&] { return Run(copy, x); }));
  if (logits.scalar_type() != at::kFloat || logits.sizes() != at::IntArrayRef({kTrialRows, num_outputs})) {
    return RefusedScript(absl::StrCat(question, " gives ", c10::toString(logits.scalar_type()), " ",
                                      Render(logits.sizes()), "; float32 [n, ", num_outputs,
                                      "], what the likelihood takes, is wanted"));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const at::Tensor again, TryScript(question + " fails", [&] { return Run(copy, x); }));
  if (!SameBits(logits, again))
    return RefusedScript(question + " gives another answer the second time: it must draw no random numbers");
  const at::Tensor other = TrialInputs(input_shape, true, device);
  CHAINFLEET_ASSIGN_OR_RETURN(const at::Tensor beside,
                              TryScript(question + " fails", [&] { return Run(copy, other); }));
  if (!SameBits(logits.narrow(0, 0, kTrialRows - 1), beside.narrow(0, 0, kTrialRows - 1))) {
    return RefusedScript(question + " mixes examples: the logits of one must not depend on the inputs of another");
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!SameBits(buffers[i], before[i]))
      return RefusedScript(question + " changes a buffer: buffers are constants here");
  }
  return absl::OkStatus();
}

}  // namespace

// Free copies; another copy is made when all are in use.
struct ScriptedNetwork::Copies {
  Copies(const torch::jit::Module& loaded) : original(loaded) {}

  std::unique_ptr<Copy> Take() {
    MutexLock lock(&mutex);
    if (!free.empty()) {
      std::unique_ptr<Copy> copy = std::move(free.back());
      free.pop_back();
      return copy;
    }
    auto copy = std::make_unique<Copy>();
    copy->module = original.deepcopy();
    copy->slots = ParametersOf(copy->module).slots;
    return copy;
  }
  void Return(std::unique_ptr<Copy> copy) {
    MutexLock lock(&mutex);
    free.push_back(std::move(copy));
  }

  const torch::jit::Module original;
  Mutex mutex;
  std::vector<std::unique_ptr<Copy>> free CHAINFLEET_GUARDED_BY(mutex);
};

ScriptedNetwork::ScriptedNetwork(NetworkShape shape, std::unique_ptr<Copies> copies)
    : shape_(std::move(shape)), copies_(std::move(copies)) {}

ScriptedNetwork::~ScriptedNetwork() = default;

absl::StatusOr<std::shared_ptr<const ScriptedNetwork>> ScriptedNetwork::Load(const std::string& bytes,
                                                                             const std::vector<int64_t>& input_shape,
                                                                             int64_t num_outputs, at::Device device,
                                                                             const std::vector<ParameterShape>& more) {
  CHAINFLEET_ASSIGN_OR_RETURN(torch::jit::Module module, LoadScript(bytes, device));
  if (!module.find_method("forward")) return RefusedScript("the module has no method forward(x)");
  module.eval();
  NetworkShape shape{.input_shape = input_shape, .num_outputs = num_outputs};
  CHAINFLEET_ASSIGN_OR_RETURN(shape.parameters, ShapesOf(ParametersOf(module)));
  const int64_t size = NumParameters(shape.parameters);
  for (ParameterShape parameter : more) {
    parameter.offset += size;
    shape.parameters.push_back(std::move(parameter));
  }
  auto copies = std::make_unique<Copies>(module);
  std::unique_ptr<Copy> trial = copies->Take();
  CHAINFLEET_RETURN_IF_ERROR(CheckForward(trial.get(), input_shape, num_outputs, device));
  copies->Return(std::move(trial));
  return std::shared_ptr<const ScriptedNetwork>(new ScriptedNetwork(std::move(shape), std::move(copies)));
}

absl::Status CheckScript(const std::string& bytes) { return LoadScript(bytes, at::kCPU).status(); }

at::Tensor ScriptedNetwork::Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x) const {
  std::unique_ptr<Copy> copy = copies_->Take();
  for (Slot& slot : copy->slots) slot.owner.setattr(slot.name, parameters[slot.parameter].squeeze(0));
  at::Tensor logits = Run(copy.get(), x.squeeze(0)).unsqueeze(0);
  copies_->Return(std::move(copy));
  return logits;
}

absl::StatusOr<std::shared_ptr<const ScriptedNetwork>> ScriptOf(const ModelSpec& model, const std::string* module,
                                                                const NetworkShape& network, at::Device device) {
  const auto* script = std::get_if<TorchScriptModel>(&model.kind);
  if (script == nullptr) return nullptr;
  if (module == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("model ", script->name, ": the plan comes without its file"));
  }
  return ScriptedNetwork::Load(*module, network.input_shape, network.num_outputs, device,
                               ParametersOf(LikelihoodOf(model)));
}

}  // namespace chainfleet
