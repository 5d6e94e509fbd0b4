// libFuzzer target: arbitrary files of models, .pt2 and TorchScript.
//
// The first byte says what the rest is: 0 the archive; else one of its members, while the others are those of a small
// network: 1 the model, 2 the list of weights, 3 the nodes of the graph alone. A mutated archive seldom has correct
// CRCs. For accepted .pt2 files, checks that values and members exist, so that a worker need not. Only an archive is
// also checked as TorchScript.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "core/formats/exported_operators.h"
#include "core/formats/exported_program.h"
#include "core/formats/torch_script.h"
#include "core/formats/zip.h"
#include "tests/support/exported_tensors.h"

namespace {

using chainfleet::ExportedInt;
using chainfleet::ExportedProgram;
using chainfleet::ExportedValue;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::string ModelWith(const std::string& nodes) {
  return R"({"graph_module":{"graph":{"nodes":)" + nodes +
         R"(,"tensor_values":{"x":{"dtype":7,"sizes":[{"as_expr":{"expr_str":"s"}},{"as_int":2}]},)"
         R"("y":{"dtype":7,"sizes":[{"as_expr":{"expr_str":"s"}},{"as_int":3}]}}},"signature":{"input_specs":)"
         R"([{"parameter":{"arg":{"name":"w"},"parameter_name":"w"}},{"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],)"
         R"("output_specs":[{"user_output":{"arg":{"as_tensor":{"name":"y"}}}}]}},)"
         R"("range_constraints":{"s":{"min_val":0,"max_val":null}},"schema_version":{"major":8,"minor":17}})";
}

constexpr char kNodes[] =
    R"([{"target":"torch.ops.aten.linear.default","inputs":[{"name":"input","arg":{"as_tensor":{"name":"x"}}},)"
    R"({"name":"weight","arg":{"as_tensor":{"name":"w"}}}],"outputs":[{"as_tensor":{"name":"y"}}]}])";
constexpr char kWeights[] =
    R"({"config":{"w":{"path_name":"weight_0","use_pickle":false,"tensor_meta":{"dtype":7,"sizes":[{"as_int":3},)"
    R"({"as_int":2}],"strides":[{"as_int":2},{"as_int":1}],"storage_offset":{"as_int":0},"layout":7}}}})";

std::string ArchiveOf(uint8_t part, const std::string& content) {
  const std::string nodes = part == 3 ? content : kNodes;
  return *chainfleet::WriteZip({{"n/models/model.json", part == 1 ? content : ModelWith(nodes)},
                                {"n/data/weights/model_weights_config.json", part == 2 ? content : kWeights},
                                {"n/data/constants/model_constants_config.json", R"({"config":{}})"},
                                {"n/data/weights/weight_0", std::string(24, '\0')},
                                {"n/byteorder", "little"},
                                {"n/archive_format", "pt2"}});
}

// The values that are known so far.
class Known {
 public:
  explicit Known(const ExportedProgram& program)
      : known_(static_cast<size_t>(program.num_values)), count_(program.tensors.size() + program.inputs.size()) {
    Require(count_ <= known_.size(), "all tensors and inputs are values");
    std::fill_n(known_.begin(), count_, true);
  }
  void Use(ExportedValue value) const {
    Require(value.id >= 0 && static_cast<size_t>(value.id) < known_.size(), "an id is below num_values");
    Require(known_[static_cast<size_t>(value.id)], "a value is computed before it is used");
  }
  void Add(ExportedValue value) {
    Require(value.id >= 0 && static_cast<size_t>(value.id) < known_.size(), "an id is below num_values");
    Require(!known_[static_cast<size_t>(value.id)], "a value is computed once");
    known_[static_cast<size_t>(value.id)] = true;
  }
  template <typename T>
  void operator()(const T&) const {}
  void operator()(const ExportedValue& value) const { Use(value); }
  void operator()(const std::optional<ExportedValue>& value) const {
    if (value) Use(*value);
  }
  void operator()(const ExportedInt& value) const { std::visit(*this, value); }
  void operator()(const std::vector<ExportedInt>& list) const {
    for (const auto& value : list) (*this)(value);
  }
  void operator()(const std::vector<std::optional<ExportedValue>>& list) const {
    for (const auto& value : list) (*this)(value);
  }

 private:
  std::vector<bool> known_;
  size_t count_;
};

void CheckShape(const std::vector<int64_t>& shape) {
  __int128 numbers = 1;
  for (const int64_t size : shape) {
    Require(size >= 1, "an axis has a size");
    numbers *= size;
  }
  Require(numbers <= __int128{1} << 40, "a row fits into memory");
}

void CheckAccepted(const std::string& bytes, const ExportedProgram& program) {
  Known known(program);
  for (const auto& node : program.nodes) {
    Require(chainfleet::IsExportedOperator(node.op), "an operator is in the list");
    for (const auto& [name, argument] : node.arguments) std::visit(known, argument);
    Require(node.drop_rate >= 0 && node.drop_rate < 1, "a rate is below 1");
    Require(node.statistic < 0 || static_cast<size_t>(node.statistic) + 1 < program.statistics.size(),
            "a node that trains has a mean and a variance");
    for (const auto& value : node.outputs) {
      if (value) known.Add(*value);
    }
  }
  known.Use(program.result);
  Require(!program.inputs.empty(), "there is an input");
  for (const int32_t i : program.statistics) {
    Require(i >= 0 && i < program.num_tensors(), "a statistic is a tensor");
    Require(program.tensors[static_cast<size_t>(i)].shape.size() == 1, "a statistic has one axis");
  }
  for (const auto& tensor : program.tensors) {
    Require(tensor.activation_bytes_per_row <= program.activation_bytes_per_row, "a part is not larger than the whole");
  }
  for (const auto& input : program.inputs) CheckShape(input.shape);
  CheckShape(program.output.shape);
  const auto tensors = chainfleet::ReadExportedTensors(bytes, program);
  if (!tensors.ok()) return;  // a CRC is wrong
  for (size_t i = 0; i < tensors->size(); ++i) {
    __int128 size = chainfleet::SizeOf(program.tensors[i].type);
    for (const int64_t axis : program.tensors[i].shape) size *= axis;
    Require(size == static_cast<__int128>((*tensors)[i].size()), "a tensor has the bytes of its shape");
  }
}

void CheckScript(const std::string& bytes) {
  const absl::Status checked = chainfleet::CheckTorchScript(bytes);
  Require(checked.ok() || absl::IsInvalidArgument(checked) || absl::IsResourceExhausted(checked),
          "a refusal is INVALID_ARGUMENT or RESOURCE_EXHAUSTED");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string content(reinterpret_cast<const char*>(data) + 1, size - 1);
  const uint8_t part = data[0] & 3;
  const std::string bytes = part == 0 ? content : ArchiveOf(part, content);
  if (part == 0) CheckScript(bytes);
  (void)chainfleet::IsExportedProgram(bytes);
  const auto program = chainfleet::ReadExportedProgram(bytes);
  if (program.ok()) {
    CheckAccepted(bytes, *program);
    return 0;
  }
  Require(absl::IsInvalidArgument(program.status()), "a refusal is INVALID_ARGUMENT");
  Require(!program.status().message().empty(), "a refusal says why");
  return 0;
}
