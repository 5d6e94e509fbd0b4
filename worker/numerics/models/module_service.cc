#include "worker/numerics/models/module_service.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "worker/numerics/arena/device.h"
#include "worker/numerics/models/module_memory.h"
#include "worker/numerics/models/script_loading.h"
#include "worker/numerics/models/scripted_network.h"

namespace chainfleet {
namespace {

// Makes LibTorch open what it opens once: the source of its seed, and files that its libraries read at their first use.
void WarmUp() {
  at::detail::getDefaultCPUGenerator();
  const c10::AutoGradMode autograd(true);
  const at::Tensor x = at::ones({2, 3, 8, 8}), kernel = at::ones({4, 3, 3, 3}).requires_grad_(true),
                   weight = at::ones({10, 144}).requires_grad_(true);
  const at::Tensor h = at::conv2d(x, kernel).relu().flatten(1);
  torch::autograd::grad({at::softmax(at::linear(h, weight), 1).sum()}, {kernel, weight});
}

// A copy at the same distance from a multiple of 64 bytes.
at::Tensor AlignedCopy(const at::Tensor& view) {
  constexpr int64_t kFloats = 16;
  const auto place = static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.const_data_ptr()) / sizeof(float) % kFloats);
  at::Tensor copy = at::empty({view.numel() + kFloats}, at::kFloat).narrow(0, place, view.numel()).view(view.sizes());
  return copy.copy_(view);
}

// Answers calls with the module and the graph of its last pass.
class ModuleService {
 public:
  explicit ModuleService(const ModuleMemory& memory) : memory_(memory) {}

  // Reads a call and writes its answer. Runs nothing if this process is not `confined`.
  void Answer(const absl::Status& confined) {
    if (!confined.ok()) return Write(ModuleAnswer::kFailed, std::string(confined.message()));
    try {
      const absl::Status answered = Dispatch();
      if (answered.ok()) return;
      const std::vector<FieldViolation> violations = FieldViolationsOf(answered);
      Write(ModuleAnswer::kRefused, violations.empty() ? std::string(answered.message()) : violations.front().message);
    } catch (const std::bad_alloc&) {
      Write(ModuleAnswer::kFailed, "can't allocate memory");  // the words of LibTorch's allocator
    } catch (const c10::Error& error) {
      Write(ModuleAnswer::kFailed, error.what_without_backtrace());
    } catch (const std::exception& error) {
      Write(ModuleAnswer::kFailed, error.what());
    }
  }

 private:
  static constexpr size_t kMostError = 8 << 10;

  void Write(ModuleAnswer kind, const std::string& text) {
    ModuleWriter answer(memory_);
    answer.Add(static_cast<int64_t>(kind));
    answer.Add(std::string_view(text).substr(0, kMostError));
  }

  ModuleWriter Done() {
    ModuleWriter answer(memory_);
    answer.Add(static_cast<int64_t>(ModuleAnswer::kDone));
    return answer;
  }

  absl::Status Dispatch() {
    ModuleReader call(memory_);
    switch (static_cast<ModuleCall>(call.Number())) {
      case ModuleCall::kLoad:
        return Load(&call);
      case ModuleCall::kDescribe:
        return Describe(&call);
      case ModuleCall::kForward:
        return Forward(&call);
      case ModuleCall::kBackward:
        return Backward(&call);
    }
    return absl::InternalError("an unknown call");
  }

  absl::Status Load(ModuleReader* call) {
    CHAINFLEET_ASSIGN_OR_RETURN(module_, ScriptModule::Load(call->Text(limits::kMaxModelBytes), at::kCPU));
    Done();
    return absl::OkStatus();
  }

  absl::Status Describe(ModuleReader* call) {
    const std::vector<int64_t> input_shape = call->Shape();
    CHAINFLEET_ASSIGN_OR_RETURN(const NetworkShape shape,
                                module_->Describe({kScriptPath, input_shape, call->Number(), at::kCPU, {}}));
    ModuleWriter answer = Done();
    answer.Add(std::ssize(shape.parameters));
    for (const ParameterShape& parameter : shape.parameters) {
      answer.Add(parameter.name);
      answer.Add(parameter.shape);
      answer.Add(at::from_blob(const_cast<float*>(parameter.stored.get()), parameter.shape, at::kFloat));
    }
    return absl::OkStatus();
  }

  absl::Status Forward(ModuleReader* call) {
    leaves_.clear();
    logits_ = at::Tensor();
    const int64_t num_outputs = call->Number();
    const std::vector<int64_t> x_shape = call->Shape();
    std::vector<at::Tensor> inputs;
    for (std::vector<int64_t> shape : module_->shapes()) {
      shape.insert(shape.begin(), 1);
      inputs.push_back(Input(call, shape));
    }
    inputs.push_back(Input(call, x_shape));
    const c10::AutoGradMode autograd(!leaves_.empty());
    // The next message overwrites the memory, and the graph may need any input.
    if (!leaves_.empty()) {
      for (at::Tensor& input : inputs) {
        if (!input.requires_grad()) input = AlignedCopy(input);
      }
    }
    const at::Tensor x = inputs.back();
    inputs.pop_back();
    const at::Tensor logits = module_->Logits(inputs, x);
    TORCH_CHECK(logits.scalar_type() == at::kFloat && logits.sizes() == at::IntArrayRef({1, x.size(1), num_outputs}),
                "forward of inputs ", x.sizes().slice(1), " gives ", logits.scalar_type(), " ", logits.sizes().slice(1),
                "; the likelihood needs float32 [n, ", num_outputs, "]");
    Done().Add(logits.clone());  // it may be an input, which lies where the answer goes
    if (!leaves_.empty()) logits_ = logits;
    return absl::OkStatus();
  }

  at::Tensor Input(ModuleReader* call, const std::vector<int64_t>& shape) {
    const bool wanted = call->Number() != 0;
    const at::Tensor input = call->Tensor(shape);
    if (!wanted) return input;
    return leaves_.emplace_back(AlignedCopy(input).requires_grad_(true));
  }

  absl::Status Backward(ModuleReader* call) {
    TORCH_CHECK(logits_.defined(), "there is no pass to differentiate");
    const bool last = call->Number() != 0;
    const at::Tensor of_logits = AlignedCopy(call->Tensor(logits_.sizes()));
    std::vector<at::Tensor> gradients(leaves_.size());
    if (logits_.requires_grad()) {
      gradients = torch::autograd::grad({logits_}, leaves_, {of_logits}, /*retain_graph=*/!last, /*create_graph=*/false,
                                        /*allow_unused=*/true);
    }
    ModuleWriter answer = Done();
    for (const at::Tensor& gradient : gradients) {
      answer.Add(static_cast<int64_t>(gradient.defined()));
      if (gradient.defined()) answer.Add(gradient);
    }
    if (last) {
      leaves_.clear();
      logits_ = at::Tensor();
    }
    return absl::OkStatus();
  }

  const ModuleMemory& memory_;
  std::unique_ptr<ScriptModule> module_;
  std::vector<at::Tensor> leaves_;  // inputs of the last pass whose gradients may be asked for
  at::Tensor logits_;               // its outputs; undefined if there are no such inputs
};

}  // namespace

int ServeModule(const std::function<absl::Status()>& confine) {
  const ModuleMemory memory(kModuleMemory);
  if (memory.data() == nullptr || !InitializeDevice("cpu", 1).ok()) return 1;
  WarmUp();
  const absl::Status confined = confine();
  ModuleService service(memory);
  for (char byte = 0;;) {
    const ssize_t got = read(kModuleSocket, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    service.Answer(confined);
    if (write(kModuleSocket, &byte, 1) != 1) return 0;
  }
}

}  // namespace chainfleet
