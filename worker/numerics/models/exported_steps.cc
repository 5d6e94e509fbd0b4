#include "worker/numerics/models/exported_steps.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/numerics/models/dropout_mask.h"
#include "worker/numerics/models/vmap_scope.h"

namespace chainfleet {
namespace {

using Values = std::vector<c10::IValue>;
using Check = void (*)(const Values& arguments);

constexpr char kMathAttention[] = "aten::_scaled_dot_product_attention_math";

struct Argument {
  c10::IValue fixed = {};                          // without `of_values`
  std::optional<ExportedArgument> of_values = {};  // made from values of the graph, at each run
  c10::TypePtr type;                               // as the operator declares it
};

// Calls an operator; or reads a size of a tensor; or computes with sizes.
struct Step {
  std::string name;  // for messages
  std::optional<c10::OperatorHandle> op = {};
  bool is_size = false;
  int64_t (*arithmetic)(int64_t, int64_t) = nullptr;
  std::vector<Argument> arguments = {};  // all that it takes, in order
  std::vector<std::optional<ExportedValue>> outputs;
  bool returns_list = false;
  std::vector<int32_t> uses = {};       // values that it needs
  std::vector<int32_t> last_uses = {};  // values that no later step needs
  bool reads_rows = false;              // its outputs depend on the inputs of the program
  double drop_rate = 0;                 // as of ExportedNode
  int32_t statistic = -1;               // as of ExportedNode
  bool drops_channels = false, is_attention = false;
  Check check = nullptr;  // throws for arguments that the operator would trust

  bool trains() const { return drop_rate > 0 || statistic >= 0; }
};

c10::ScalarType TorchType(ExportedType type) {
  constexpr c10::ScalarType kTypes[] = {c10::kBool, c10::kByte, c10::kChar,     c10::kShort, c10::kInt,
                                        c10::kLong, c10::kHalf, c10::kBFloat16, c10::kFloat, c10::kDouble};
  return kTypes[static_cast<int>(type)];
}

c10::MemoryFormat TorchFormat(ExportedMemoryFormat format) {
  constexpr c10::MemoryFormat kFormats[] = {c10::MemoryFormat::Contiguous, c10::MemoryFormat::ChannelsLast,
                                            c10::MemoryFormat::ChannelsLast3d, c10::MemoryFormat::Preserve};
  return kFormats[static_cast<int>(format)];
}

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

int64_t NumberOf(const ExportedInt& number, const Values& values) {
  if (const auto* fixed = std::get_if<int64_t>(&number)) return *fixed;
  return values[std::get<ExportedValue>(number).id].toInt();
}

c10::IValue TensorsOf(const std::vector<std::optional<ExportedValue>>& tensors, bool with_gaps, const Values& values) {
  c10::List<at::Tensor> all;
  c10::List<std::optional<at::Tensor>> some;
  for (const std::optional<ExportedValue>& tensor : tensors) {
    if (with_gaps) {
      some.push_back(tensor ? std::optional(values[tensor->id].toTensor()) : std::nullopt);
    } else {
      all.push_back(tensor ? values[tensor->id].toTensor() : at::Tensor());
    }
  }
  return with_gaps ? c10::IValue(some) : c10::IValue(all);
}

// The values that an argument is made of.
std::vector<ExportedValue> ValuesIn(const ExportedArgument& argument) {
  std::vector<ExportedValue> used;
  if (const auto* value = std::get_if<ExportedValue>(&argument)) used.push_back(*value);
  if (const auto* numbers = std::get_if<std::vector<ExportedInt>>(&argument)) {
    for (const ExportedInt& number : *numbers) {
      if (const auto* value = std::get_if<ExportedValue>(&number)) used.push_back(*value);
    }
  }
  if (const auto* tensors = std::get_if<std::vector<std::optional<ExportedValue>>>(&argument)) {
    for (const auto& tensor : *tensors) {
      if (tensor) used.push_back(*tensor);
    }
  }
  return used;
}

bool IsList(const c10::Type& type, c10::TypeKind elements) {
  if (const auto optional = type.cast<c10::OptionalType>()) return IsList(*optional->getElementType(), elements);
  const auto list = type.cast<c10::ListType>();
  return list != nullptr && list->getElementType()->kind() == elements;
}

// A number where the operator takes a float or a tensor, as PyTorch converts it: the type of the other operand decides
// about the result's.
c10::IValue Converted(const c10::IValue& value, const c10::Type& type) {
  const auto optional = type.cast<c10::OptionalType>();
  const c10::TypeKind kind = optional ? optional->getElementType()->kind() : type.kind();
  if (kind == c10::TypeKind::FloatType && value.isInt()) return static_cast<double>(value.toInt());
  if (kind != c10::TypeKind::TensorType || !value.isScalar()) return value;
  at::Tensor number = at::scalar_tensor(value.toScalar(), at::dtype(value.toScalar().type()));
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

c10::IValue ValueOf(const ExportedArgument& argument, const c10::Type& type, at::Device device, const Values& values) {
  const Overloaded cases{
      [](std::monostate) { return c10::IValue(); },
      [&](ExportedValue value) { return values[value.id]; },
      [](int64_t number) { return c10::IValue(number); },
      [](double number) { return c10::IValue(number); },
      [](bool flag) { return c10::IValue(flag); },
      [](const std::string& text) { return c10::IValue(text); },
      [&](const std::vector<ExportedInt>& numbers) {
        std::vector<int64_t> list(numbers.size());
        std::ranges::transform(numbers, list.begin(), [&](const ExportedInt& n) { return NumberOf(n, values); });
        if (!IsList(type, c10::TypeKind::FloatType)) return c10::IValue(list);
        return c10::IValue(std::vector<double>(list.begin(), list.end()));
      },
      [](const std::vector<double>& numbers) { return c10::IValue(numbers); },
      [](const std::vector<bool>& flags) {
        c10::List<bool> list;
        for (const bool flag : flags) list.push_back(flag);
        return c10::IValue(list);
      },
      [&](const std::vector<std::optional<ExportedValue>>& tensors) {
        return TensorsOf(tensors, IsList(type, c10::TypeKind::OptionalType), values);
      },
      [](ExportedType scalar) { return c10::IValue(static_cast<int64_t>(TorchType(scalar))); },
      [&](OwnDevice) { return c10::IValue(device); },
      [](ExportedMemoryFormat format) { return c10::IValue(static_cast<int64_t>(TorchFormat(format))); },
  };
  return std::visit(cases, argument);
}

// The argument as LibTorch takes it.
c10::IValue Resolve(const ExportedArgument& argument, const c10::Type& type, at::Device device, const Values& values) {
  return Converted(ValueOf(argument, type, device, values), type);
}

std::string Named(const ExportedNode& node) { return absl::StrCat("node ", node.name, " (", node.op, ")"); }

absl::Status Refused(const ExportedNode& node, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(Named(node), " ", why));
}

int64_t DividedDown(int64_t a, int64_t b) {
  TORCH_CHECK(b != 0 && b != -1, "a size is divided by ", b);
  return a / b - static_cast<int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

using Arithmetic = int64_t (*)(int64_t, int64_t);

// For sizes; wraps around, and LibTorch then refuses the size.
Arithmetic ArithmeticOf(const std::string& op) {
  static const std::map<std::string, Arithmetic> kKnown = {
      {"_operator::add", [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + b); }},
      {"_operator::sub", [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) - b); }},
      {"_operator::mul", [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * b); }},
      {"_operator::neg", [](int64_t a, int64_t) { return static_cast<int64_t>(-static_cast<uint64_t>(a)); }},
      {"_operator::floordiv", DividedDown},
      {"_operator::mod", [](int64_t a, int64_t b) { return a - b * DividedDown(a, b); }},
  };
  const auto found = kKnown.find(op);
  return found == kKnown.end() ? nullptr : found->second;
}

// LibTorch's fused kernel takes one value of g for each slice of v, without a look at the size of g.
void CheckWeightNorm(const Values& arguments) {
  const at::Tensor v = arguments[0].toTensor(), g = arguments[1].toTensor();
  const int64_t dim = arguments[2].toInt();
  if (dim != 0 && dim != v.dim() - 1) return;  // not fused
  TORCH_CHECK(v.numel() > 0 && g.numel() == v.size(dim), "g has ", g.numel(), " values, v has the shape ", v.sizes(),
              " and is normalised along axis ", dim);
}

// With other modes LibTorch's kernel writes nothing, and the result is memory that others have used.
void CheckGridSampler(const Values& arguments) {
  for (const size_t mode : {size_t{2}, size_t{3}}) {  // interpolation, padding
    const int64_t given = arguments[mode].toInt();
    TORCH_CHECK(given >= 0 && given <= 2, "mode ", given, " is unknown");
  }
}

Check CheckOf(const std::string& op) {
  if (op == "aten::_weight_norm") return CheckWeightNorm;
  return op.starts_with("aten::grid_sampler") ? CheckGridSampler : nullptr;
}

absl::StatusOr<Step> CompileNode(const ExportedNode& node, at::Device device) {
  Step step{.name = Named(node), .outputs = node.outputs, .returns_list = node.returns_list};
  step.drop_rate = node.drop_rate;
  step.statistic = node.statistic;
  step.drops_channels = node.op.starts_with("aten::feature_dropout");
  step.is_attention = node.op == kMathAttention;
  step.check = CheckOf(node.op);
  const auto add = [&](const ExportedArgument& argument, const c10::TypePtr& type) {
    step.arguments.push_back({.type = type});
    if (ValuesIn(argument).empty()) {
      step.arguments.back().fixed = Resolve(argument, *type, device, {});
    } else {
      step.arguments.back().of_values = argument;
    }
  };
  step.is_size = node.op == "aten::sym_size" || node.op == "aten::sym_numel";
  if (step.is_size || (step.arithmetic = ArithmeticOf(node.op)) != nullptr) {
    for (const auto& [name, argument] : node.arguments) add(argument, c10::IntType::get());
    const size_t wanted = node.op == "_operator::neg" || node.op == "aten::sym_numel" ? 1 : 2;
    if (step.arguments.size() == wanted) return step;
    return Refused(node, absl::StrCat("has ", step.arguments.size(), " arguments, not ", wanted));
  }
  step.op = c10::Dispatcher::singleton().findSchema({node.op, node.overload});
  if (!step.op) return Refused(node, absl::StrCat("has no overload \"", node.overload, "\" in this LibTorch"));
  std::map<std::string, const ExportedArgument*> given;
  for (const auto& [name, argument] : node.arguments) given[name] = &argument;
  for (const c10::Argument& wanted : step.op->schema().arguments()) {
    if (wanted.kwarg_only() && wanted.alias_info() != nullptr && wanted.alias_info()->isWrite()) {
      return Refused(node, "writes its result into the argument " + wanted.name());
    }
    const auto found = given.find(wanted.name());
    if (found != given.end()) {
      add(*found->second, wanted.type());
      given.erase(found);
    } else if (wanted.default_value()) {
      step.arguments.push_back({.fixed = *wanted.default_value(), .type = wanted.type()});
    } else {
      return Refused(node, "lacks the argument " + wanted.name());
    }
  }
  if (given.empty()) return step;
  return Refused(node, absl::StrCat("has an unknown argument ", given.begin()->first));
}

// The strides of a tensor depend on the device and on vmap, so a view of it may need a copy.
ExportedNode OnAnyDevice(ExportedNode node) {
  if (node.op != "aten::view" || !node.overload.empty()) return node;
  node.op = "aten::reshape";
  for (auto& [name, argument] : node.arguments) {
    if (name == "size") name = "shape";
  }
  return node;
}

// Some operators trust their arguments (PyTorch issue 169208), and a file with sizes that do not match would make them
// read or write other memory. Returns the node with the public operator instead, which checks the same arguments and
// then calls the same kernel. INVALID_ARGUMENT: the public operator does not return all that the program uses.
absl::StatusOr<ExportedNode> Checked(ExportedNode node) {
  if (!node.overload.empty()) return node;
  if (node.op == "aten::native_channel_shuffle") {
    node.op = "aten::channel_shuffle";
    return node;
  }
  if (node.op == "aten::_native_batch_norm_legit_no_training") {
    node.op = "aten::batch_norm";
    for (const char* name : {"training", "cudnn_enabled"}) node.arguments.emplace_back(name, ExportedArgument(false));
  } else if (node.op == "aten::native_group_norm") {
    node.op = "aten::group_norm";
    std::erase_if(node.arguments,
                  [](const auto& given) { return given.first == "N" || given.first == "C" || given.first == "HxW"; });
    for (auto& [name, argument] : node.arguments) {
      if (name == "group") name = "num_groups";
    }
  } else {
    return node;
  }
  const auto is_used = [](const auto& output) { return output.has_value(); };
  if (std::any_of(node.outputs.begin() + (node.outputs.empty() ? 0 : 1), node.outputs.end(), is_used)) {
    return Refused(node, "is used for its mean or variance, which is not supported");
  }
  return node;
}

// The node in a form that has a rule for batches and takes a mask, which the fused attention of a CPU lacks.
ExportedNode WithoutFusion(ExportedNode node) {
  if (node.op == "aten::scaled_dot_product_attention") node.op = kMathAttention;
  return node;
}

using See = ExportedSteps::See;

// Calls the operators of one pass in its mode, and counts the random numbers that they have used.
class ProgramPass {
 public:
  // `several`, if set, has all chains.
  ProgramPass(const ForwardMode& mode, const See& see, const VmapScope* several = nullptr)
      : mode_(mode), see_(see), chains_(several == nullptr ? 1 : several->chains()), several_(several) {}

  void Call(const Step& step, Values* stack) {
    if (step.check != nullptr) step.check(*stack);
    const bool drops = step.drop_rate > 0 && mode_.dropout != nullptr;
    if (drops && step.is_attention) SetAttentionMask(step, stack);
    if (step.statistic >= 0) return Normalise(step, stack);
    step.op->callBoxed(stack);
    if (drops && !step.is_attention) Drop(step, stack);
  }

  void Show(const Step& step, const c10::IValue& output) const {
    if (see_ && step.reads_rows && output.isTensor()) see_(output.toTensor());
  }

 private:
  // [shape...] of the chain, or of each chain.
  at::Tensor Mask(const Step& step, std::vector<int64_t> shape, const at::Tensor& like) {
    const at::Tensor mask =
        DropoutMask(step.drop_rate, mode_.dropout, chains_, NumValues(shape), like, &dropout_blocks_);
    if (several_ == nullptr) return mask.view(shape);
    shape.insert(shape.begin(), chains_);
    return several_->Wrapped(mask.view(shape));
  }

  // In evaluation the operator returns its input. The form that writes to it does not write here: the input may share
  // memory with a constant of the file, and later nodes take the result.
  void Drop(const Step& step, Values* stack) {
    const at::Tensor input = stack->front().toTensor();
    std::vector<int64_t> shape = input.sizes().vec();
    for (size_t axis = 2; step.drops_channels && axis < shape.size(); ++axis) shape[axis] = 1;
    *stack = {input * Mask(step, shape, input)};
  }

  // (query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, ...)
  void SetAttentionMask(const Step& step, Values* stack) {
    const at::Tensor query = (*stack)[0].toTensor();
    std::vector<int64_t> shape = query.sizes().vec();
    shape.back() = (*stack)[1].toTensor().size(-2);
    (*stack)[4] = step.drop_rate;
    (*stack)[6] = Mask(step, shape, query).ne(0);
  }

  // (input, weight, bias, running_mean, running_var, training, momentum, ...)
  void Normalise(const Step& step, Values* stack) const {
    if (mode_.statistics != nullptr) {
      for (size_t i = 0; i < 2; ++i) {
        (*stack)[3 + i] = (*mode_.statistics)[static_cast<size_t>(step.statistic) + i].squeeze(0);
      }
      return step.op->callBoxed(stack);
    }
    const at::Tensor x = stack->front().toTensor();
    at::Tensor mean, variance;
    if (mode_.batch_statistics != nullptr) {
      // With a momentum of 1 the running values are the minibatch's own.
      mean = at::zeros({x.size(1)}, x.options());
      variance = at::zeros({x.size(1)}, x.options());
    }
    (*stack)[3] = mean;
    (*stack)[4] = variance;
    (*stack)[5] = true;
    (*stack)[6] = 1.0;
    step.op->callBoxed(stack);
    if (mode_.batch_statistics == nullptr) return;
    if (x.numel() == x.size(1)) variance.zero_();  // one value per channel has no variance
    mode_.batch_statistics->push_back(mean.unsqueeze(0));
    mode_.batch_statistics->push_back(variance.unsqueeze(0));
  }

  const ForwardMode& mode_;
  const See& see_;
  const int64_t chains_;
  const VmapScope* const several_;
  uint32_t dropout_blocks_ = 0;
};

}  // namespace

struct ExportedPlan {
  at::Device device;
  ExportedValue result;
  size_t num_values, num_tensors;
  std::vector<Step> steps;
  std::vector<Step> of_chains;  // for RunTogether; empty if this LibTorch lacks an operator of them

  std::span<const Step> StepsFor(const VmapScope* several) const;
  void FindUses(const ExportedProgram& program);
  void FindReaders(const ExportedProgram& program);
  void Run(std::span<const Step> some, ProgramPass pass, Values* values) const;
  void Run(const Step& step, ProgramPass* pass, Values* values) const;
};

std::span<const Step> ExportedPlan::StepsFor(const VmapScope* several) const {
  if (several == nullptr) return steps;
  TORCH_CHECK(!of_chains.empty(), "a node has no form for several chains");
  return of_chains;
}

void ExportedPlan::FindUses(const ExportedProgram& program) {
  std::vector<bool> needed(num_values, false);
  needed[result.id] = true;
  for (size_t i = steps.size(); i-- > 0;) {
    const auto use = [&](ExportedValue value) {
      if (!needed[value.id]) steps[i].last_uses.push_back(value.id);
      needed[value.id] = true;
    };
    for (const auto& output : steps[i].outputs) {
      if (output) use(*output);
    }
    for (const auto& [name, argument] : program.nodes[i].arguments) {
      for (const ExportedValue value : ValuesIn(argument)) {
        use(value);
        steps[i].uses.push_back(value.id);
      }
    }
  }
  for (size_t i = 0; i < of_chains.size(); ++i) of_chains[i].last_uses = steps[i].last_uses;
}

void ExportedPlan::Run(const Step& step, ProgramPass* pass, Values* values) const {
  Values stack;
  for (const Argument& argument : step.arguments) {
    stack.push_back(argument.of_values ? Resolve(*argument.of_values, *argument.type, device, *values)
                                       : argument.fixed);
  }
  if (step.is_size) {
    const at::Tensor tensor = stack.front().toTensor();
    stack = {stack.size() == 1 ? tensor.numel() : tensor.size(stack.back().toInt())};
  } else if (step.arithmetic != nullptr) {
    stack = {step.arithmetic(stack.front().toInt(), stack.back().toInt())};
  } else {
    pass->Call(step, &stack);
  }
  if (step.returns_list) {
    const std::vector<at::Tensor> list = stack.at(0).toTensorVector();
    stack.assign(list.begin(), list.end());
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (!step.outputs[i]) continue;
    pass->Show(step, stack.at(i));
    (*values)[step.outputs[i]->id] = stack.at(i);
  }
  for (const int32_t id : step.last_uses) (*values)[id] = c10::IValue();
}

absl::StatusOr<ExportedSteps> ExportedSteps::Compile(const ExportedProgram& program, at::Device device) {
  auto plan = std::make_shared<ExportedPlan>(ExportedPlan{device,
                                                          program.result,
                                                          static_cast<size_t>(program.num_values),
                                                          static_cast<size_t>(program.num_tensors()),
                                                          {},
                                                          {}});
  bool together = true;
  for (const ExportedNode& of_program : program.nodes) {
    CHAINFLEET_ASSIGN_OR_RETURN(ExportedNode node, Checked(OnAnyDevice(of_program)));
    if (node.drop_rate > 0) node = WithoutFusion(std::move(node));
    CHAINFLEET_ASSIGN_OR_RETURN(Step step, CompileNode(node, device));
    plan->steps.push_back(std::move(step));
    absl::StatusOr<Step> of_chains = CompileNode(WithoutFusion(node), device);
    together = together && of_chains.ok();
    if (together) plan->of_chains.push_back(*std::move(of_chains));
  }
  if (!together) plan->of_chains.clear();
  plan->FindUses(program);
  plan->FindReaders(program);
  return ExportedSteps(std::move(plan));
}

void ExportedPlan::FindReaders(const ExportedProgram& program) {
  std::vector<bool> has_rows(num_values, false);
  std::fill_n(has_rows.begin() + program.num_tensors(), program.inputs.size(), true);
  for (Step& step : steps) {
    step.reads_rows = std::ranges::any_of(step.uses, [&](int32_t id) { return has_rows[id]; });
    for (const auto& output : step.outputs) {
      if (output) has_rows[output->id] = step.reads_rows;
    }
  }
}

void ExportedPlan::Run(std::span<const Step> some, ProgramPass pass, Values* values) const {
  values->resize(num_values);
  for (const Step& step : some) {
    try {
      Run(step, &pass, values);
    } catch (c10::Error& error) {
      error.add_context(step.name);
      throw;
    }
  }
}

at::Tensor ExportedSteps::Run(const std::vector<at::Tensor>& values, const ForwardMode& mode, const See& see) const {
  Values all(values.begin(), values.end());
  plan_->Run(plan_->steps, ProgramPass(mode, see), &all);
  return all[plan_->result.id].toTensor();
}

at::Tensor ExportedSteps::RunTogether(int64_t chains, const std::vector<at::Tensor>& values,
                                      const std::vector<bool>& of_chains, const ForwardMode& mode) const {
  const VmapScope scope(chains);
  Values wrapped;
  for (size_t i = 0; i < values.size(); ++i) wrapped.push_back(of_chains[i] ? scope.Wrapped(values[i]) : values[i]);
  plan_->Run(plan_->StepsFor(&scope), ProgramPass(mode, nullptr, &scope), &wrapped);
  return scope.Unwrapped(wrapped[plan_->result.id].toTensor());
}

ExportedCut ExportedSteps::CutBefore(const std::vector<size_t>& sampled) const {
  const std::vector<Step>& steps = plan_->steps;
  const auto is_sampled = [&](int32_t id) { return std::ranges::count(sampled, static_cast<size_t>(id)) > 0; };
  const auto depends = [&](const Step& step) { return step.trains() || std::ranges::any_of(step.uses, is_sampled); };
  const auto first = std::ranges::find_if(steps, depends);
  ExportedCut cut{.steps = static_cast<size_t>(first - steps.begin())};
  std::vector<bool> needed(plan_->num_values, false), is_size(plan_->num_values, false);
  needed[plan_->result.id] = true;
  for (auto step = first; step != steps.end(); ++step) {
    for (const int32_t id : step->uses) needed[id] = true;
    cut.written |= step->op && step->op->schema().is_mutable();
  }
  for (auto step = first; step != steps.end(); ++step) {
    for (const auto& output : step->outputs) {
      if (output) needed[output->id] = false;
    }
  }
  for (const Step& step : steps) {
    for (const auto& output : step.outputs) {
      if (output) is_size[output->id] = step.is_size || step.arithmetic != nullptr;
    }
  }
  for (size_t id = plan_->num_tensors; id < plan_->num_values; ++id) {
    if (needed[id]) (is_size[id] ? cut.sizes : cut.tensors).push_back(static_cast<int32_t>(id));
  }
  return cut;
}

CutValues ExportedSteps::RunBefore(const ExportedCut& cut, const std::vector<at::Tensor>& values,
                                   const See& see) const {
  Values all(values.begin(), values.end());
  plan_->Run(std::span(plan_->steps).first(cut.steps), ProgramPass({}, see), &all);
  CutValues at_cut;
  for (const int32_t id : cut.tensors) at_cut.tensors.push_back(all[id].toTensor());
  for (const int32_t id : cut.sizes) at_cut.sizes.push_back(all[id].toInt());
  return at_cut;
}

at::Tensor ExportedSteps::RunAfter(const ExportedCut& cut, const std::vector<at::Tensor>& tensors,
                                   const CutValues& at_cut, const ForwardMode& mode, const See& see,
                                   const VmapScope* several) const {
  Values all(tensors.begin(), tensors.end());
  all.resize(plan_->num_values);
  for (size_t i = 0; i < cut.tensors.size(); ++i) all[cut.tensors[i]] = at_cut.tensors[i];
  for (size_t i = 0; i < cut.sizes.size(); ++i) all[cut.sizes[i]] = at_cut.sizes[i];
  plan_->Run(plan_->StepsFor(several).subspan(cut.steps), ProgramPass(mode, see, several), &all);
  return all[plan_->result.id].toTensor();
}

at::Tensor EmptyFor(const ExportedTensor& tensor) { return at::empty(tensor.shape, at::dtype(TorchType(tensor.type))); }

}  // namespace chainfleet
