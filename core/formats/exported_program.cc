#include "core/formats/exported_program.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/formats/exported_archive.h"
#include "core/formats/exported_graph.h"
#include "core/formats/exported_json.h"
#include "core/formats/exported_training.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;
using Kind = ExportedValues::Kind;

constexpr int64_t kSchemaMajor = 8;
constexpr size_t kMaxInputs = 64;
constexpr int64_t kMinRows = 2;  // torch.export takes one row for a special case

absl::Status Refuse(const std::string& what) { return absl::InvalidArgumentError(what); }

class ProgramReader {
 public:
  ProgramReader(ExportedArchive archive, int64_t file_bytes) : archive_(std::move(archive)), left_(file_bytes) {}

  // Throws nlohmann::json::exception where the description is damaged.
  absl::Status Read(const Json& model);
  ExportedProgram& program() { return program_; }

 private:
  absl::Status CheckVersion(const Json& model);
  absl::Status AddTensors(const Json& specs);
  absl::Status AddTensor(const std::string& name, const std::string& value, bool is_parameter, bool is_constant);
  absl::Status AddInputs(const Json& specs, const Json& metas);
  absl::Status SetOutput(const Json& specs, const Json& metas);
  absl::Status SetSignature(const std::string& name, const Json& metas, ExportedSignature* signature);

  const ExportedArchive archive_;
  int64_t left_;  // bytes of the file that no tensor has taken
  Json weights_, constants_;
  std::map<std::string, int32_t> by_member_;
  std::string batch_;      // the expression of the first axis
  bool has_lstm_ = false;  // PyTorch before 2.13 states h and c of an LSTM with an axis of 1 too many
  ExportedValues values_;
  ExportedProgram program_;
};

absl::Status ProgramReader::CheckVersion(const Json& model) {
  const auto version = model.find("torch_version");
  program_.torch_version = version == model.end() ? "" : ShownName(version->get_ref<const std::string&>());
  const int64_t major = ExportedInteger(model.at("schema_version").at("major"));
  if (major == kSchemaMajor) return absl::OkStatus();
  return Refuse(absl::StrCat("PyTorch ", program_.torch_version, " wrote version ", major,
                             " of the schema, only version ", kSchemaMajor, " is read (PyTorch 2.9 to 2.15)"));
}

absl::Status ProgramReader::AddTensor(const std::string& name, const std::string& value, bool is_parameter,
                                      bool is_constant) {
  const Json& list = is_constant ? constants_ : weights_;
  ExportedTensor tensor = {.name = name, .is_parameter = is_parameter};
  const char* const folder = is_constant ? "data/constants/" : "data/weights/";
  CHAINFLEET_RETURN_IF_ERROR(archive_.Describe(list.at("config").at(name), folder, &tensor));
  const auto [known, is_new] = by_member_.emplace(tensor.member, program_.num_tensors());
  if (!is_new) {
    const ExportedTensor& first = program_.tensors[static_cast<size_t>(known->second)];
    if (first.is_parameter != is_parameter || first.shape != tensor.shape || first.type != tensor.type) {
      return Refuse(absl::StrCat("shares the memory of ", ShownName(first.name), " in another form: clone() it"));
    }
    return values_.AddAlias(value, {known->second});
  }
  int64_t bytes = SizeOf(tensor.type);
  for (const int64_t size : tensor.shape) bytes *= size;
  if ((left_ -= bytes) < 0) return Refuse("unpacks to more than the file: write it without compression");
  program_.tensors.push_back(std::move(tensor));
  return values_.Add(value, Kind::kTensor).status();
}

absl::Status ProgramReader::AddTensors(const Json& specs) {
  for (const Json& item : specs.get_ref<const Json::array_t&>()) {
    const std::string& kind = ExportedKey(item);
    const Json& spec = item.at(kind);
    const bool is_constant = kind == "tensor_constant";
    if (kind == "user_input" || kind == "constant_input") continue;
    if (!is_constant && kind != "parameter" && kind != "buffer") {
      return Refuse(absl::StrCat("has an input of the kind ", ShownName(kind), ", which is not supported"));
    }
    const auto& name = spec.at(kind + "_name").get_ref<const std::string&>();
    if (name.size() > kMaxExportedNameBytes)
      return Refuse(absl::StrCat(kind, " ", ShownName(name), ": the name is too long"));
    const bool in_constants = is_constant || (kind == "buffer" && !spec.at("persistent").get<bool>());
    const absl::Status added = CatchJson([&] {
      return AddTensor(name, spec.at("arg").at("name").get<std::string>(), kind == "parameter", in_constants);
    });
    if (!added.ok()) return Annotate(added, absl::StrCat(kind, " ", ShownName(name)));
  }
  return absl::OkStatus();
}

absl::Status ProgramReader::SetSignature(const std::string& name, const Json& metas, ExportedSignature* signature) {
  const Json& meta = metas.at(name);
  signature->name = name;
  CHAINFLEET_RETURN_IF_ERROR(ReadTensorMeta(meta, &signature->type, &signature->shape));
  std::vector<int64_t>& shape = signature->shape;
  const size_t extra = has_lstm_ && shape.size() > 1 && shape[0] == 1 && shape[1] == -1 ? 1 : 0;
  if (shape.empty()) return Refuse("has no axes, the first one must be the batch");
  if (shape[extra] != -1 && signature == &program_.output) {
    return Refuse(absl::StrCat("has ", shape[0], " rows for any batch: its first axis must be the batch"));
  }
  if (shape[extra] != -1) {
    return Refuse(absl::StrCat("takes ", shape[0], " rows only: export the network with dynamic_shapes={\"",
                               ShownName(name), "\": {0: torch.export.Dim(\"batch\")}}"));
  }
  const auto& rows = meta.at("sizes").at(extra).at("as_expr").at("expr_str").get_ref<const std::string&>();
  if (batch_.empty()) batch_ = rows;
  if (rows != batch_) return Refuse("has another number of rows than the first input: use one Dim for all first axes");
  shape.erase(shape.begin(), shape.begin() + static_cast<ptrdiff_t>(extra) + 1);
  for (const int64_t size : shape) {
    if (size < 0) return Refuse("has a dynamic axis besides the first one, which is not supported");
    if (size == 0) return Refuse("has an axis of size 0");
  }
  return absl::OkStatus();
}

absl::Status ProgramReader::AddInputs(const Json& specs, const Json& metas) {
  for (const Json& item : specs) {
    if (ExportedKey(item) != "user_input") continue;
    const Json& argument = item.at("user_input").at("arg");
    if (ExportedKey(argument) == "as_none") continue;
    if (ExportedKey(argument) != "as_tensor") {
      return Refuse(absl::StrCat("an input of the kind ", ShownName(ExportedKey(argument)),
                                 " is not supported, only tensors are"));
    }
    const auto& name = argument.at("as_tensor").at("name").get_ref<const std::string&>();
    if (name.size() > kMaxExportedNameBytes) {
      return Refuse(absl::StrCat("input ", ShownName(name), ": the name is too long"));
    }
    if (program_.inputs.size() == kMaxInputs) return Refuse(absl::StrCat("has more than ", kMaxInputs, " inputs"));
    CHAINFLEET_RETURN_IF_ERROR(values_.Add(name, Kind::kTensor).status());
    const absl::Status set = SetSignature(name, metas, &program_.inputs.emplace_back());
    if (!set.ok()) return Annotate(set, absl::StrCat("input ", ShownName(name)));
  }
  return program_.inputs.empty() ? Refuse("has no inputs") : absl::OkStatus();
}

absl::Status ProgramReader::SetOutput(const Json& specs, const Json& metas) {
  const auto& list = specs.get_ref<const Json::array_t&>();
  for (const Json& item : list) {
    if (ExportedKey(item) == "user_output") continue;
    return Refuse(absl::StrCat(
        "has an output of the kind ", ShownName(ExportedKey(item)),
        ": a network must not change its buffers, export it in eval mode or without run_decompositions()"));
  }
  if (list.size() != 1) return Refuse(absl::StrCat("has ", list.size(), " outputs, a network has one"));
  const Json& argument = list[0].at("user_output").at("arg");
  if (ExportedKey(argument) != "as_tensor") return Refuse("the output is no tensor");
  const auto& name = argument.at("as_tensor").at("name").get_ref<const std::string&>();
  absl::StatusOr<ExportedValue> result = values_.Find(name, Kind::kTensor);
  if (!result.ok()) return Annotate(result.status(), "the output");
  program_.result = *result;
  has_lstm_ = std::ranges::count(program_.nodes, "aten::lstm", &ExportedNode::op) > 0;
  const absl::Status set = SetSignature(name, metas, &program_.output);
  return set.ok() ? set : Annotate(set, absl::StrCat("output ", ShownName(name)));
}

// A batch of any number of rows must do.
absl::Status CheckRanges(const Json& ranges) {
  for (const auto& [symbol, range] : ranges.get_ref<const Json::object_t&>()) {
    const Json &min = range.at("min_val"), &max = range.at("max_val");
    if (max.is_null() && (min.is_null() || ExportedInteger(min) <= kMinRows)) continue;
    return Refuse(
        "range_constraints bound the number of rows: export the network with Dim(\"batch\") without min and max");
  }
  return absl::OkStatus();
}

absl::Status ProgramReader::Read(const Json& model) {
  CHAINFLEET_RETURN_IF_ERROR(CheckVersion(model));
  CHAINFLEET_ASSIGN_OR_RETURN(weights_, archive_.ReadJson("data/weights/model_weights_config.json"));
  CHAINFLEET_ASSIGN_OR_RETURN(constants_, archive_.ReadJson("data/constants/model_constants_config.json"));
  const Json& graph = model.at("graph_module").at("graph");
  const Json& signature = model.at("graph_module").at("signature");
  CHAINFLEET_RETURN_IF_ERROR(AddTensors(signature.at("input_specs")));
  CHAINFLEET_RETURN_IF_ERROR(AddInputs(signature.at("input_specs"), graph.at("tensor_values")));
  CHAINFLEET_RETURN_IF_ERROR(CheckRanges(model.at("range_constraints")));
  CHAINFLEET_RETURN_IF_ERROR(ReadExportedNodes(graph.at("nodes"), &values_, &program_));
  CHAINFLEET_RETURN_IF_ERROR(SetOutput(signature.at("output_specs"), graph.at("tensor_values")));
  CountActivations(graph, graph.at("tensor_values").at(program_.inputs.front().name), &values_, &program_);
  program_.num_values = values_.size();
  for (ExportedNode& node : program_.nodes) {
    for (auto& value : node.outputs) {
      if (value && !values_.IsUsed(*value)) value.reset();
    }
  }
  return FindTraining(&program_);
}

}  // namespace

absl::StatusOr<ExportedProgram> ReadExportedProgram(const ByteSource& source, const AdmitBytes& admit) {
  CHAINFLEET_ASSIGN_OR_RETURN(ExportedArchive archive, ExportedArchive::Open(source, admit));
  CHAINFLEET_ASSIGN_OR_RETURN(const Json model, archive.ReadJson("models/model.json"));
  ProgramReader reader(std::move(archive), source.size_bytes());
  const absl::Status read = CatchJson([&] { return reader.Read(model); });
  if (!read.ok()) return Annotate(read, ".pt2 file");
  return std::move(reader.program());
}

}  // namespace chainfleet
