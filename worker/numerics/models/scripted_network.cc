#include "worker/numerics/models/scripted_network.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/script.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/mutex.h"

namespace chainfleet {
namespace {

constexpr int64_t kTrialRows = 3;

absl::Status Refused(const std::string& why) { return InvalidFields({{"model.torchscript", why}}); }

std::string Render(at::IntArrayRef shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// The interpreter's messages end with what is wrong, after a traceback.
std::string LastLine(const std::string& message) {
  std::string last;
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    if (!absl::StripAsciiWhitespace(line).empty()) last = std::string(absl::StripAsciiWhitespace(line));
  }
  return last;
}

// `run()`, or a violation that begins with `what`. Memory that is short is no fault of the module.
template <typename Function>
auto Try(const std::string& what, const Function& run) -> absl::StatusOr<decltype(run())> {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    // The CPU allocator's, of no type of its own.
    if (std::string(error.what_without_backtrace()).find("can't allocate memory") != std::string::npos) throw;
    return Refused(absl::StrCat(what, ": ", LastLine(error.what_without_backtrace())));
  } catch (const std::exception& error) {
    return Refused(absl::StrCat(what, ": ", LastLine(error.what())));
  }
}

// Control flow, values and attributes.
const std::set<std::string_view>& PrimOperators() {
  static const auto* const known = new std::set<std::string_view>{"Constant",
                                                                  "If",
                                                                  "Loop",
                                                                  "ListConstruct",
                                                                  "ListUnpack",
                                                                  "TupleConstruct",
                                                                  "TupleUnpack",
                                                                  "TupleIndex",
                                                                  "TupleSlice",
                                                                  "DictConstruct",
                                                                  "GetAttr",
                                                                  "SetAttr",
                                                                  "CallMethod",
                                                                  "CallFunction",
                                                                  "CreateObject",
                                                                  "Uninitialized",
                                                                  "unchecked_cast",
                                                                  "unchecked_unwrap_optional",
                                                                  "isinstance",
                                                                  "NumToTensor",
                                                                  "min",
                                                                  "max",
                                                                  "abs",
                                                                  "shape",
                                                                  "dtype",
                                                                  "device",
                                                                  "layout",
                                                                  "is_cuda",
                                                                  "is_quantized",
                                                                  "is_sparse",
                                                                  "is_mkldnn",
                                                                  "is_meta",
                                                                  "data",
                                                                  "requires_grad",
                                                                  "RaiseException",
                                                                  "rangelist",
                                                                  "itemsize",
                                                                  "index",
                                                                  "name",
                                                                  "StringIndex",
                                                                  "ModuleContainerIndex"};
  return *known;
}

// Operators of `aten` that take a text, which names a mode or is part of an error's message: no other may take one, as
// what a text names may be a file.
bool MayTakeText(std::string_view name) {
  static const auto* const known = new std::set<std::string_view>{"format",
                                                                  "percentFormat",
                                                                  "eq",
                                                                  "ne",
                                                                  "add",
                                                                  "len",
                                                                  "str",
                                                                  "join",
                                                                  "lower",
                                                                  "upper",
                                                                  "get",
                                                                  "keys",
                                                                  "Dict",
                                                                  "div",
                                                                  "div_",
                                                                  "divide",
                                                                  "gelu",
                                                                  "gelu_",
                                                                  "einsum",
                                                                  "pad",
                                                                  "conv1d",
                                                                  "conv2d",
                                                                  "conv3d",
                                                                  "meshgrid",
                                                                  "norm",
                                                                  "linalg_norm",
                                                                  "startswith",
                                                                  "endswith",
                                                                  "scatter_reduce",
                                                                  "scatter_reduce_",
                                                                  "__contains__",
                                                                  "__getitem__",
                                                                  "_set_item",
                                                                  "searchsorted",
                                                                  "linalg_matrix_norm",
                                                                  "index_reduce"};
  return known->contains(name);
}

// The text of an operator's own name says that it may do more than arithmetic.
bool IsSuspect(std::string_view name) {
  static const auto* const private_but_known = new std::set<std::string_view>{"_convolution",
                                                                              "_convolution_mode",
                                                                              "_set_item",
                                                                              "_unwrap_optional",
                                                                              "_weight_norm",
                                                                              "_softmax",
                                                                              "_log_softmax",
                                                                              "_native_multi_head_attention",
                                                                              "_transformer_encoder_layer_fwd"};
  if (name.starts_with("__")) return false;
  if (name.starts_with("_")) return !private_but_known->contains(name);
  constexpr std::string_view kBeginnings[] = {
      "empty",       "new_empty",     "resize",          "set_",    "warn", "wait", "save", "from_file",
      "manual_seed", "record_stream", "get_num_threads", "backward"};
  return std::ranges::any_of(kBeginnings, [&](std::string_view beginning) { return name.starts_with(beginning); });
}

bool TakesText(const c10::FunctionSchema* schema) {
  return schema == nullptr || std::ranges::any_of(schema->arguments(), [](const c10::Argument& argument) {
           return argument.type()->repr_str().find("str") != std::string::npos;
         });
}

bool IsAllowed(const torch::jit::Node& node) {
  const std::string kind = node.kind().toQualString();
  const std::string_view name = std::string_view(kind).substr(std::min(kind.size(), kind.find("::") + 2));
  if (kind.starts_with("prim::")) return PrimOperators().contains(name);
  if (!kind.starts_with("aten::") || IsSuspect(name)) return false;
  return MayTakeText(name) || !TakesText(node.maybeSchema());
}

// Why a function may not run; empty: it may.
std::string WhyNotRun(const torch::jit::Block& block) {
  for (const torch::jit::Node* node : block.nodes()) {
    if (!IsAllowed(*node)) {
      return absl::StrCat("uses ", node->kind().toQualString(),
                          ", which is not among the operators on tensors that a module may use");
    }
    for (const torch::jit::Block* inner : node->blocks()) {
      if (std::string why = WhyNotRun(*inner); !why.empty()) return why;
    }
  }
  return "";
}

std::string WhyNotRun(torch::jit::Function* function) {
  function->ensure_defined();
  if (!function->isGraphFunction()) return absl::StrCat("calls ", function->name(), ", which is no TorchScript");
  return WhyNotRun(*torch::jit::toGraphFunction(*function).graph()->block());
}

// Of a loaded module, before it runs: each operator of each of its functions must be known to compute on tensors,
// numbers and lists. Operators that open or print something, call other processes, show memory that was never written,
// or are not LibTorch's own `aten` ones are not.
std::string WhyNotRun(const torch::jit::Module& module) {
  std::vector<torch::jit::Function*> functions = module._ivalue()->compilation_unit()->get_functions();
  for (const torch::jit::Module& part : module.modules()) {
    const std::vector<torch::jit::Function*>& methods = part.type()->methods();
    functions.insert(functions.end(), methods.begin(), methods.end());
  }
  for (torch::jit::Function* function : functions) {
    if (std::string why = WhyNotRun(function); !why.empty()) return why;
  }
  return "";
}

// Why a file may not be loaded: loading it would run code of its own. Members are found as LibTorch finds them. Empty:
// it may.
std::string WhyNotLoad(const std::string& bytes) {
  if (!bytes.starts_with("PK")) return "the file does not load: it is no archive";
  std::istringstream in(bytes);
  caffe2::serialize::PyTorchStreamReader reader(&in);
  for (const std::string& record : reader.getAllRecords()) {
    const std::string name = absl::AsciiStrToLower(record);
    if (name == "model.json") return "the file is of a format before PyTorch 1.4: save the module again";
    const bool is_code = name.starts_with("code/") && name.ends_with(".py");
    if (!is_code && !name.ends_with(".pkl")) continue;
    const auto [data, size] = reader.getRecord(record);
    const std::string_view text(static_cast<const char*>(data.get()), size);
    if (is_code && text.find("__setstate__") != text.npos) {
      return absl::StrCat(record, " has a method __setstate__, which would run while the file is loaded");
    }
    if (text.find("torch.classes") != text.npos) return absl::StrCat(record, " uses a class of torch.classes");
  }
  return "";
}

// Where a parameter stands in a module.
struct Slot {
  torch::jit::Module owner;
  std::string name;
  size_t parameter;  // that it is
};

// A module and the slots that take a chain's parameters.
struct Copy {
  torch::jit::Module module;
  std::vector<Slot> slots;
};

// The parameters of a module, each once: tied tensors are one parameter in several slots.
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
      return Refused(absl::StrCat("parameter ", shape.name, " is ", c10::toString(value.scalar_type()), " ",
                                  Render(value.sizes()), "; parameters are float32 and not empty"));
    }
    shape.fan_in = FanIn(value);
    if (shape.fan_in == 0 && shape.name.ends_with("bias")) {
      shape.fan_in = fan_in[shape.name.substr(0, shape.name.size() - 4) + "weight"];
    }
    shape.initial = static_cast<float>(value.mean(at::kDouble).item<double>());
    shapes.push_back(std::move(shape));
  }
  if (shapes.empty()) return Refused("has no parameters to sample");
  return shapes;
}

// As the graph stands: an optimised one would be another after some runs, and its bits with it.
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

// Values of every kind of sign; the last row others if `changed`.
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
  CHAINFLEET_ASSIGN_OR_RETURN(const at::Tensor logits, Try(question + " fails", [&] { return Run(copy, x); }));
  if (logits.scalar_type() != at::kFloat || logits.sizes() != at::IntArrayRef({kTrialRows, num_outputs})) {
    return Refused(absl::StrCat(question, " gives ", c10::toString(logits.scalar_type()), " ", Render(logits.sizes()),
                                "; float32 [n, ", num_outputs, "], what the likelihood takes, is wanted"));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const at::Tensor again, Try(question + " fails", [&] { return Run(copy, x); }));
  if (!SameBits(logits, again))
    return Refused(question + " gives another answer the second time: it must draw no random numbers");
  const at::Tensor other = TrialInputs(input_shape, true, device);
  CHAINFLEET_ASSIGN_OR_RETURN(const at::Tensor beside, Try(question + " fails", [&] { return Run(copy, other); }));
  if (!SameBits(logits.narrow(0, 0, kTrialRows - 1), beside.narrow(0, 0, kTrialRows - 1))) {
    return Refused(question + " mixes examples: the logits of one must not depend on the inputs of another");
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!SameBits(buffers[i], before[i])) return Refused(question + " changes a buffer: buffers are constants here");
  }
  return absl::OkStatus();
}

}  // namespace

// Free copies; one more is made when all are at work.
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
  const std::string loading = "the file does not load";
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string not_loaded, Try(loading, [&] { return WhyNotLoad(bytes); }));
  if (!not_loaded.empty()) return Refused(not_loaded);
  CHAINFLEET_ASSIGN_OR_RETURN(torch::jit::Module module, Try(loading, [&] {
                                std::istringstream in(bytes);
                                return torch::jit::load(in, device);
                              }));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string not_run, Try(loading, [&] { return WhyNotRun(module); }));
  if (!not_run.empty()) return Refused(not_run);
  if (!module.find_method("forward")) return Refused("the module has no method forward(x)");
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
