#include "worker/numerics/models/script_loading.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/script.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include "absl/strings/ascii.h"
#include "worker/numerics/models/stored_network.h"

namespace chainfleet {
namespace {

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

// `aten` operators that take a text, which names a mode or is part of an error message. No other operator may take one,
// because a text may name a file.
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

// True if the operator's name suggests that it does more than arithmetic.
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

// The reason why a function must not run; empty if it may.
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

// Checks a loaded module before it runs: each operator of each function must be known to compute on tensors, numbers
// and lists. This excludes operators that open or print something, call other processes, show uninitialised memory, or
// are not LibTorch's own `aten` ones.
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

// The reason why a file must not be loaded: loading would run its own code. Finds members as LibTorch does. Empty if it
// may be loaded.
std::string WhyNotLoad(const std::string& bytes) {
  if (!bytes.starts_with("PK")) return "the file does not load: it is no archive";
  std::istringstream in(bytes);
  caffe2::serialize::PyTorchStreamReader reader(&in);
  for (const std::string& record : reader.getAllRecords()) {
    const std::string name = absl::AsciiStrToLower(record);
    if (name == "archive_format") return "the file is a .pt2 file: name it as model.exported";
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

absl::Status Refused(const std::string& why) { return InvalidFields({{kScriptPath, why}}); }

}  // namespace

absl::StatusOr<torch::jit::Module> LoadScript(const std::string& bytes, at::Device device) {
  const std::string loading = "the file does not load";
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string not_loaded,
                              TryStored(kScriptPath, loading, [&] { return WhyNotLoad(bytes); }));
  if (!not_loaded.empty()) return Refused(not_loaded);
  CHAINFLEET_ASSIGN_OR_RETURN(torch::jit::Module module, TryStored(kScriptPath, loading, [&] {
                                std::istringstream in(bytes);
                                return torch::jit::load(in, device);
                              }));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string not_run,
                              TryStored(kScriptPath, loading, [&] { return WhyNotRun(module); }));
  if (!not_run.empty()) return Refused(not_run);
  return module;
}

}  // namespace chainfleet
