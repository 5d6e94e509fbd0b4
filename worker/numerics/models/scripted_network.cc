#include "worker/numerics/models/scripted_network.h"

#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/script.h>

#include <map>
#include <tuple>
#include <utility>

#include "core/base/mutex.h"
#include "worker/numerics/models/script_loading.h"

namespace chainfleet {
namespace {

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

// Disables graph optimisation, which would change the graph, and so the bits, after some runs.
class Unoptimised {
 public:
  Unoptimised() : before_(torch::jit::getGraphExecutorOptimize()) { torch::jit::setGraphExecutorOptimize(false); }
  ~Unoptimised() { torch::jit::setGraphExecutorOptimize(before_); }

 private:
  const bool before_;
};

at::Tensor Run(torch::jit::Module* module, const at::Tensor& x) {
  const Unoptimised scope;
  return module->forward({x}).toTensor();
}

}  // namespace

// Free copies; another copy is made when all are in use.
struct ScriptModule::Copies {
  explicit Copies(const torch::jit::Module& loaded) : original(loaded), parameters(ParametersOf(loaded)) {
    for (const at::Tensor& value : parameters.values) shapes.push_back(value.sizes().vec());
  }

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
  const Parameters parameters;
  std::vector<std::vector<int64_t>> shapes;
  Mutex mutex;
  std::vector<std::unique_ptr<Copy>> free CHAINFLEET_GUARDED_BY(mutex);
};

ScriptModule::ScriptModule(std::unique_ptr<Copies> copies) : copies_(std::move(copies)) {}

ScriptModule::~ScriptModule() = default;

absl::StatusOr<std::unique_ptr<ScriptModule>> ScriptModule::Load(const std::string& bytes, at::Device device) {
  CHAINFLEET_ASSIGN_OR_RETURN(torch::jit::Module module, LoadScript(bytes, device));
  if (!module.find_method("forward")) return InvalidFields({{kScriptPath, "the module has no method forward(x)"}});
  module.eval();
  return std::unique_ptr<ScriptModule>(new ScriptModule(std::make_unique<Copies>(module)));
}

absl::StatusOr<NetworkShape> ScriptModule::Describe(const StoredNetworkUse& use) const {
  const Parameters& parameters = copies_->parameters;
  CHAINFLEET_ASSIGN_OR_RETURN(NetworkShape shape, ShapeOfStored(parameters.names, parameters.values, use));
  torch::jit::Module trial = copies_->original.deepcopy();
  std::vector<at::Tensor> buffers;
  for (const at::Tensor& buffer : trial.buffers()) buffers.push_back(buffer);
  const auto forward = [&](const at::Tensor& x) { return Run(&trial, x); };
  CHAINFLEET_RETURN_IF_ERROR(TryForward(forward, buffers, use));
  return shape;
}

const std::vector<std::vector<int64_t>>& ScriptModule::shapes() const { return copies_->shapes; }

at::Tensor ScriptModule::Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x) const {
  std::unique_ptr<Copy> copy = copies_->Take();
  for (Slot& slot : copy->slots) slot.owner.setattr(slot.name, parameters[slot.parameter].squeeze(0));
  at::Tensor logits = Run(&copy->module, x.squeeze(0)).unsqueeze(0);
  copies_->Return(std::move(copy));
  return logits;
}

absl::StatusOr<std::shared_ptr<const StoredNetwork>> ScriptedNetwork::Load(const std::string& bytes,
                                                                           const std::vector<int64_t>& input_shape,
                                                                           int64_t num_outputs, at::Device device,
                                                                           const std::vector<ParameterShape>& more) {
  CHAINFLEET_ASSIGN_OR_RETURN(auto module, ScriptModule::Load(bytes, device));
  CHAINFLEET_ASSIGN_OR_RETURN(NetworkShape shape,
                              module->Describe({kScriptPath, input_shape, num_outputs, device, more}));
  return std::shared_ptr<const StoredNetwork>(new ScriptedNetwork(std::move(shape), std::move(module)));
}

at::Tensor ScriptedNetwork::Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                                   const ForwardMode&) const {
  return module_->Logits(parameters, x);
}

}  // namespace chainfleet
