// A network that torch.export.save wrote: a .pt2 file, which is a zip archive of JSON and raw tensors. It is read
// without LibTorch, and its pickles are never opened. The file has no code: its forward pass is a list of operators by
// name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/formats/admit_bytes.h"
#include "core/formats/zip.h"

namespace chainfleet {

enum class ExportedType { kBool, kUint8, kInt8, kInt16, kInt32, kInt64, kHalf, kBfloat16, kFloat, kDouble };

// Bytes of one number.
int64_t SizeOf(ExportedType type);
// "float32", as PyTorch writes it.
const char* NameOf(ExportedType type);

// A tensor of the file: a parameter, a buffer or a constant.
struct ExportedTensor {
  std::string name;  // as in the state_dict
  bool is_parameter = false;
  ExportedType type = ExportedType::kFloat;
  std::vector<int64_t> shape;
  std::string member;                    // the archive's; little-endian, in C order
  int64_t activation_bytes_per_row = 0;  // those of the program that are computed from its first use on
};

// A value of the graph: first the tensors, then the inputs, then the outputs of one node after another.
struct ExportedValue {
  int32_t id = 0;
  bool operator==(const ExportedValue&) const = default;
};
// A number of the graph, or a value that is computed from the sizes of the inputs.
using ExportedInt = std::variant<int64_t, ExportedValue>;
struct OwnDevice {  // a device of the file; the graph runs where the worker wants
  bool operator==(const OwnDevice&) const = default;
};
enum class ExportedMemoryFormat { kContiguous, kChannelsLast, kChannelsLast3d, kPreserve };

// std::monostate: None. Lists of tensors may have gaps (nullopt).
using ExportedArgument =
    std::variant<std::monostate, ExportedValue, int64_t, double, bool, std::string, std::vector<ExportedInt>,
                 std::vector<double>, std::vector<bool>, std::vector<std::optional<ExportedValue>>, ExportedType,
                 OwnDevice, ExportedMemoryFormat>;

struct ExportedNode {
  std::string name;      // for messages; PyTorch 2.9 has none, then that of its first output
  std::string op;        // "aten::conv2d"; "_operator::mul" for a function of Python on sizes
  std::string overload;  // "Tensor"; empty for the default
  std::vector<std::pair<std::string, ExportedArgument>> arguments;  // by name, in the order of the file
  // A node has either some outputs or one list of them. nullopt: an output that nothing uses.
  std::vector<std::optional<ExportedValue>> outputs;
  bool returns_list = false;
  // In training mode (FindTraining); the arguments are those of evaluation.
  double drop_rate = 0;    // drops units while a chain samples
  int32_t statistic = -1;  // batch norm: where its mean is in ExportedProgram::statistics, before its variance
};

// An input or output without its first axis, the batch.
struct ExportedSignature {
  std::string name;
  ExportedType type = ExportedType::kFloat;
  std::vector<int64_t> shape;
};

struct ExportedProgram {
  std::string torch_version;  // "2.11.0+cu130"
  std::vector<ExportedTensor> tensors;
  std::vector<ExportedSignature> inputs;
  ExportedSignature output;
  ExportedValue result;  // the value of the output
  std::vector<ExportedNode> nodes;
  int32_t num_values = 0;
  std::vector<int32_t> statistics;  // tensors: running means and variances of batch norm in training mode, alternating
  int64_t activation_bytes_per_row = 0;  // tensors that nodes compute, but for views, as at the export

  int32_t num_tensors() const { return static_cast<int32_t>(tensors.size()); }
  bool has_dropout() const {
    return std::ranges::any_of(nodes, [](const ExportedNode& node) { return node.drop_rate > 0; });
  }
};

// Reads and checks a file without its tensors' bytes, whose sizes are checked. INVALID_ARGUMENT, naming node and
// operator, member or tensor: the file is damaged or of an unknown schema; its first axis is not dynamic; it holds
// higher-order graphs, custom objects, pickled tensors, an operator that is not in ExportedOperators() or one that
// draws random numbers; a value is used before it is computed; there is more than one output; or FindTraining fails.
// Errors of `admit`, which is asked for the memory of the description, a multiple of its bytes in the file.
absl::StatusOr<ExportedProgram> ReadExportedProgram(const ByteSource& source, const AdmitBytes& admit = AdmitAll);

// True if the archive says of itself that it is a .pt2 file; its content may still be wrong.
bool IsExportedProgram(const ByteSource& source);

// Reads the bytes of each tensor, in order, to the room that `room` has for them. INVALID_ARGUMENT: a tensor has
// another size, or its CRC is wrong.
absl::Status ReadExportedTensors(const ByteSource& source, const ExportedProgram& program,
                                 const std::function<std::span<char>(const ExportedTensor&)>& room);

}  // namespace chainfleet
