#include "worker/numerics/models/confined_network.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "worker/numerics/models/script_loading.h"

namespace chainfleet {
namespace {

constexpr int64_t kMostModuleParameters = 1 << 16;
constexpr size_t kMostName = 4096;

using Variables = torch::autograd::variable_list;

// The violation's message as an exception, for places that return no status.
template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  const std::vector<FieldViolation> violations = FieldViolationsOf(value.status());
  throw std::runtime_error(violations.empty() ? std::string(value.status().message()) : violations.front().message);
}

// The gradients of a pass, which the process computes from its own graph.
class ModulePass final : public torch::autograd::Node {
 public:
  ModulePass(const Variables& inputs, ModuleProcesses::Lease process)
      : Node(torch::autograd::collect_next_edges(inputs)), process_(std::move(process)) {
    for (const at::Tensor& input : inputs)
      inputs_.push_back({input.requires_grad(), input.sizes().vec(), input.device()});
  }

 private:
  struct Input {
    bool wanted;
    std::vector<int64_t> shape;
    at::Device device;
  };

  Variables apply(Variables&& of_outputs) override {
    Variables gradients(inputs_.size());
    if (!of_outputs.front().defined()) return gradients;
    TORCH_CHECK(process_ != nullptr, "the graph of the module's pass was freed");
    ModuleWriter message(process_->memory());
    message.Add(static_cast<int64_t>(ModuleCall::kBackward));
    message.Add(static_cast<int64_t>(last_));
    message.Add(of_outputs.front());
    ModuleReader answer = ValueOrThrow(process_->Call());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].wanted || answer.Number() == 0) continue;  // a module may have parameters that it does not use
      gradients[i] = answer.Tensor(inputs_[i].shape).clone().to(inputs_[i].device);
    }
    return gradients;
  }
  void will_release_variables() override { last_ = true; }
  void release_variables() override { process_.reset(); }

  std::vector<Input> inputs_;
  ModuleProcesses::Lease process_;
  bool last_ = false;  // no other call of apply follows
};

}  // namespace

absl::StatusOr<std::shared_ptr<const StoredNetwork>> ConfinedNetwork::Load(std::shared_ptr<ModuleProcesses> processes,
                                                                           ModuleProcesses::File file,
                                                                           const StoredNetworkUse& use) {
  file = ModuleProcesses::OwnName(file);
  CHAINFLEET_ASSIGN_OR_RETURN(const ModuleProcesses::Lease process, processes->Take(file));
  ModuleWriter message(process->memory());
  message.Add(static_cast<int64_t>(ModuleCall::kDescribe));
  message.Add(use.input_shape);
  message.Add(use.num_outputs);
  CHAINFLEET_ASSIGN_OR_RETURN(ModuleReader answer, process->Call());
  const int64_t count = answer.Number();
  if (count < 1 || count > kMostModuleParameters) return use.Refused(absl::StrCat("has ", count, " parameters"));
  std::vector<std::string> names;
  std::vector<at::Tensor> values;
  for (int64_t k = 0; k < count; ++k) {
    names.push_back(answer.Text(kMostName));
    const std::vector<int64_t> sizes = answer.Shape();
    values.push_back(answer.Tensor(sizes).clone());
  }
  CHAINFLEET_ASSIGN_OR_RETURN(NetworkShape shape, ShapeOfStored(names, values, use));
  return std::shared_ptr<const StoredNetwork>(
      new ConfinedNetwork(std::move(shape), names.size(), std::move(processes), std::move(file)));
}

ConfinedNetwork::~ConfinedNetwork() {
  file_.reset();
  processes_->EndUnused();
}

at::Tensor ConfinedNetwork::Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                                   const ForwardMode&) const {
  Variables inputs(parameters.begin(), parameters.begin() + static_cast<std::ptrdiff_t>(num_parameters_));
  inputs.push_back(x);
  const bool kept = c10::GradMode::is_enabled() &&
                    std::ranges::any_of(inputs, [](const at::Tensor& input) { return input.requires_grad(); });
  ModuleProcesses::Lease process = ValueOrThrow(processes_->Take(file_));
  ModuleWriter message(process->memory());
  message.Add(static_cast<int64_t>(ModuleCall::kForward));
  message.Add(shape().num_outputs);
  message.Add(x.sizes());
  for (const at::Tensor& input : inputs) {
    message.Add(static_cast<int64_t>(kept && input.requires_grad()));
    message.Add(input);
  }
  ModuleReader answer = ValueOrThrow(process->Call());
  at::Tensor logits = answer.Tensor({1, x.size(1), shape().num_outputs}).clone().to(x.device());
  if (!kept) return logits;
  const std::shared_ptr<ModulePass> pass(new ModulePass(inputs, std::move(process)), torch::autograd::deleteNode);
  torch::autograd::set_history(logits, pass);
  return logits;
}

}  // namespace chainfleet
