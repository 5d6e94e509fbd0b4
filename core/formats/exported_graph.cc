#include "core/formats/exported_graph.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/saturating.h"
#include "core/formats/exported_archive.h"
#include "core/formats/exported_json.h"
#include "core/formats/exported_operators.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;
using Kind = ExportedValues::Kind;

constexpr std::string_view kSymbolic = "_operator::";

constexpr std::string_view kConditions[] = {"_operator.and_", "_operator.eq",  "_operator.ge",
                                            "_operator.gt",   "_operator.le",  "_operator.lt",
                                            "_operator.ne",   "_operator.or_", "torch.sym_not"};
// They check what the worker and LibTorch check anyway.
constexpr std::string_view kAssertions[] = {
    "torch.ops.aten._assert_async.msg",
    "torch.ops.aten._assert_scalar.default",
    "torch.ops.aten._assert_tensor_metadata.default",
    "torch.ops.aten.sym_constrain_range.default",
    "torch.ops.aten.sym_constrain_range_for_size.default",
};
// Overloads that write into an argument and have no "out" at their end.
constexpr std::string_view kOutOverloads[] = {
    "OutScalar_Other", "OutScalar_Self",        "OutTensor",     "dim_max",       "dim_min",          "dim_values",
    "dimname_values",  "dimname_values_stable", "names_dim_max", "names_dim_min", "names_dim_values", "out_mode",
    "values",          "values_stable"};
constexpr std::string_view kRandom[] = {"bernoulli",   "binomial", "cauchy",  "exponential", "geometric", "log_normal",
                                        "multinomial", "normal",   "poisson", "rand",        "rrelu",     "uniform"};

bool IsIn(std::span<const std::string_view> list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

// Says why `target` is none of ExportedOperators().
absl::Status Refusal(std::string_view target) {
  const auto because = [](const char* reason) { return absl::InvalidArgumentError(reason); };
  if (target.starts_with("torch.ops.higher_order.")) {
    return because(
        "is a higher-order operator, which holds graphs: write the network without cond, map, scan, autocast and "
        "no_grad (detach() does the same)");
  }
  if (!target.starts_with("torch.ops.")) {
    return because("is a function of Python on sizes, only +, -, *, // and % are supported");
  }
  constexpr std::string_view kAten = "torch.ops.aten.";
  if (!target.starts_with(kAten)) {
    return because("is not an operator of PyTorch (aten), and the file does not hold its code");
  }
  const std::string_view name = target.substr(kAten.size());
  if (std::ranges::any_of(kRandom, [&](std::string_view random) { return name.starts_with(random); })) {
    return because("draws random numbers: a network may draw them only for dropout");
  }
  return because("is none of the operators that a network may use");
}

// Splits "torch.ops.aten.add.Tensor" or "_operator.add".
absl::Status SetOperator(const std::string& target, ExportedNode* node) {
  constexpr std::string_view kPrefix = "torch.ops.";
  const bool symbolic = !target.starts_with(kPrefix);
  const std::string path = symbolic ? target : target.substr(kPrefix.size());
  const size_t dot = path.find('.'), last = symbolic ? path.size() : path.rfind('.');
  if (dot != std::string::npos && dot < last) {
    node->op = absl::StrCat(path.substr(0, dot), "::", path.substr(dot + 1, last - dot - 1));
  }
  if (!IsExportedOperator(node->op) || symbolic != node->op.starts_with(kSymbolic)) return Refusal(target);
  if (!symbolic && path.substr(last + 1) != "default") node->overload = path.substr(last + 1);
  if (node->overload.ends_with("out") || IsIn(kOutOverloads, node->overload)) {
    return absl::InvalidArgumentError("writes its result into an argument: write the network without out=");
  }
  return absl::OkStatus();
}

bool ReturnsSize(const ExportedNode& node) {
  return node.op.starts_with(kSymbolic) || node.op == "aten::sym_size" || node.op == "aten::sym_numel";
}

absl::Status AddOutput(const Json& output, Kind kind, ExportedValues* values, ExportedNode* node) {
  if (kind == Kind::kTensor && ExportedKey(output) == "as_none") {
    node->outputs.push_back(std::nullopt);
    return absl::OkStatus();
  }
  const Json& name = kind == Kind::kTensor ? output.at("as_tensor").at("name") : output.at("as_sym_int").at("as_name");
  CHAINFLEET_ASSIGN_OR_RETURN(node->outputs.emplace_back(), values->Add(name.get_ref<const std::string&>(), kind));
  return absl::OkStatus();
}

absl::Status AddOutputs(const Json& outputs, ExportedValues* values, ExportedNode* node) {
  const Kind kind = ReturnsSize(*node) ? Kind::kSize : Kind::kTensor;
  const auto& list = outputs.get_ref<const Json::array_t&>();
  node->returns_list = kind == Kind::kTensor && list.size() == 1 && list[0].contains("as_tensors");
  if (kind == Kind::kSize && list.size() != 1) return absl::InvalidArgumentError("must have one output");
  if (!node->returns_list) {
    for (const Json& output : list) CHAINFLEET_RETURN_IF_ERROR(AddOutput(output, kind, values, node));
    return absl::OkStatus();
  }
  for (const Json& tensor : list[0].at("as_tensors").get_ref<const Json::array_t&>()) {
    CHAINFLEET_ASSIGN_OR_RETURN(node->outputs.emplace_back(),
                                values->Add(tensor.at("name").get_ref<const std::string&>(), kind));
  }
  return absl::OkStatus();
}

// True if the node only asserts, or compares sizes for that.
absl::StatusOr<bool> IsDropped(const std::string& target, const Json& outputs, ExportedValues* values) {
  if (IsIn(kAssertions, target)) return outputs.empty() || ExportedKey(outputs.at(0)) == "as_none";
  if (!IsIn(kConditions, target)) return false;
  const Json& name = outputs.at(0).at("as_sym_bool").at("as_name");
  CHAINFLEET_RETURN_IF_ERROR(values->Add(name.get_ref<const std::string&>(), Kind::kCondition).status());
  return true;
}

// PyTorch 2.9 names no nodes: theirs is that of their first output.
std::string NameOfNode(const Json& node) {
  const auto name = node.find("name");
  if (name != node.end() && name->is_string()) return name->get<std::string>();
  const Json* part = &node.at("outputs");  // [{"as_tensor": {"name": ...}}], [{"as_tensors": [{"name": ...}]}], ...
  while (part->is_structured() && !part->empty()) part = &part->front();
  return part->is_string() ? part->get<std::string>() : "";
}

absl::Status ReadNode(const Json& json, const std::string& target, ExportedValues* values, ExportedProgram* program) {
  CHAINFLEET_ASSIGN_OR_RETURN(const bool dropped, IsDropped(target, json.at("outputs"), values));
  if (dropped) return absl::OkStatus();
  ExportedNode node;
  CHAINFLEET_RETURN_IF_ERROR(SetOperator(target, &node));
  for (const Json& input : json.at("inputs").get_ref<const Json::array_t&>()) {
    const auto& name = input.at("name").get_ref<const std::string&>();
    absl::StatusOr<ExportedArgument> argument = ReadExportedArgument(input.at("arg"), values);
    if (!argument.ok()) return Annotate(argument.status(), absl::StrCat("argument ", ShownName(name)));
    node.arguments.emplace_back(name, *std::move(argument));
  }
  CHAINFLEET_RETURN_IF_ERROR(AddOutputs(json.at("outputs"), values, &node));
  program->nodes.push_back(std::move(node));
  return absl::OkStatus();
}

// They are views of other values, or most often are.
constexpr std::string_view kViews[] = {"alias",   "chunk",     "detach", "expand",    "flatten",   "narrow",
                                       "permute", "reshape",   "select", "slice",     "split",     "squeeze",
                                       "t",       "transpose", "unbind", "unflatten", "unsqueeze", "view"};

// Returns the rows of a batch at the export, or the size of another axis that depends on them.
int64_t SizeAtExport(const Json& size) {
  const bool fixed = ExportedKey(size) != "as_expr";
  const Json known = fixed ? size : size.at("as_expr").value("hint", Json());
  return known.is_null() ? 1 : std::max<int64_t>(ExportedInteger(known.at("as_int")), 1);
}

// Returns 0 unless an axis depends on the rows.
int64_t BytesAtExport(const Json& meta) {
  ExportedType type = ExportedType::kFloat;
  std::vector<int64_t> shape;
  if (!ReadTensorMeta(meta, &type, &shape).ok() || std::ranges::count(shape, -1) == 0) return 0;
  int64_t bytes = SizeOf(type);
  for (const Json& size : meta.at("sizes")) bytes = SaturatingMultiply(bytes, SizeAtExport(size));
  return bytes;
}

// `values` are arguments of a node, {"arg": VALUE}, or its results.
template <typename See>
void ForEachTensor(const Json& values, const See& see) {
  for (const Json& item : values) {
    const auto argument = item.find("arg");
    const Json& value = argument == item.end() ? item : *argument;
    if (ExportedKey(value) == "as_tensor") see(value.at("as_tensor"));
    if (ExportedKey(value) != "as_tensors") continue;
    for (const Json& tensor : value.at("as_tensors")) see(tensor);
  }
}

}  // namespace

void CountActivations(const Json& graph, const Json& input, ExportedValues* values, ExportedProgram* program) {
  const Json& metas = graph.at("tensor_values");
  int64_t bytes = 0;
  std::vector<std::optional<int64_t>> before(program->tensors.size());  // their first uses
  const auto use = [&](const Json& tensor) {
    const auto value = values->Find(tensor.at("name").get_ref<const std::string&>(), Kind::kTensor);
    if (!value.ok() || value->id >= program->num_tensors()) return;
    auto& first = before[static_cast<size_t>(value->id)];
    first = first.value_or(bytes);
  };
  const auto add = [&](const Json& tensor) {
    const auto meta = metas.find(tensor.at("name").get_ref<const std::string&>());
    if (meta != metas.end()) bytes = SaturatingAdd(bytes, BytesAtExport(*meta));
  };
  for (const Json& node : graph.at("nodes")) {
    ForEachTensor(node.at("inputs"), use);
    const std::vector<std::string> target = absl::StrSplit(node.at("target").get_ref<const std::string&>(), '.');
    if (target.size() > 3 && IsIn(kViews, target[3])) continue;
    ForEachTensor(node.at("outputs"), add);
  }
  const int64_t rows = SizeAtExport(input.at("sizes").at(0));
  program->activation_bytes_per_row = bytes / rows;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i]) program->tensors[i].activation_bytes_per_row = (bytes - *before[i]) / rows;
  }
}

absl::Status ExportedValues::Insert(std::string_view name, Known known) {
  if (name.empty() || name.size() > kMaxExportedNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value's name has ", name.size(), " bytes, not 1 to ", kMaxExportedNameBytes));
  }
  if (known_.emplace(std::string(name), known).second) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there are two values named ", ShownName(name)));
}

absl::StatusOr<ExportedValue> ExportedValues::Add(std::string_view name, Kind kind) {
  const ExportedValue value = {size()};
  CHAINFLEET_RETURN_IF_ERROR(Insert(name, {value, kind}));
  if (kind != Kind::kCondition) used_.push_back(false);
  return value;
}

absl::Status ExportedValues::AddAlias(std::string_view name, ExportedValue value) {
  return Insert(name, {value, Kind::kTensor});
}

absl::StatusOr<ExportedValue> ExportedValues::Find(std::string_view name, Kind kind) {
  const auto found = known_.find(std::string(name));
  if (found == known_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("uses ", ShownName(name), ", which no earlier node computes"));
  }
  if (found->second.kind == kind) {
    if (kind != Kind::kCondition) used_[static_cast<size_t>(found->second.value.id)] = true;
    return found->second.value;
  }
  constexpr const char* kNames[] = {"a tensor", "a size", "a condition on sizes"};
  return absl::InvalidArgumentError(absl::StrCat("uses ", ShownName(name), " as ", kNames[static_cast<int>(kind)],
                                                 ", but it is ", kNames[static_cast<int>(found->second.kind)]));
}

absl::Status ReadExportedNodes(const Json& nodes, ExportedValues* values, ExportedProgram* program) {
  for (const Json& node : nodes.get_ref<const Json::array_t&>()) {
    const auto& target = node.at("target").get_ref<const std::string&>();
    const std::string name = NameOfNode(node);
    const size_t before = program->nodes.size();
    const absl::Status status = CatchJson([&] { return ReadNode(node, target, values, program); });
    if (!status.ok()) return Annotate(status, absl::StrCat("node ", ShownName(name), " (", ShownName(target), ")"));
    if (program->nodes.size() > before) program->nodes.back().name = name;
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
