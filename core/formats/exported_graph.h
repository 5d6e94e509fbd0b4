// Reads the graph of a .pt2 file: its nodes and their arguments.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/formats/exported_program.h"

namespace chainfleet {

inline constexpr size_t kMaxExportedNameBytes = 1024;

// The values of a graph by name. A name must have been added before it is used.
class ExportedValues {
 public:
  // A condition compares sizes. Only assertions use it, and both are dropped.
  enum class Kind { kTensor, kSize, kCondition };

  // INVALID_ARGUMENT: there is a value of this name.
  absl::StatusOr<ExportedValue> Add(std::string_view name, Kind kind);
  // `name` is another name of `value`, a tensor.
  absl::Status AddAlias(std::string_view name, ExportedValue value);
  // Marks the value as used. INVALID_ARGUMENT: there is no such value so far, or it is of another kind.
  absl::StatusOr<ExportedValue> Find(std::string_view name, Kind kind);

  int32_t size() const { return static_cast<int32_t>(used_.size()); }
  bool IsUsed(ExportedValue value) const { return used_[static_cast<size_t>(value.id)]; }

 private:
  struct Known {
    ExportedValue value;
    Kind kind;
  };
  absl::Status Insert(std::string_view name, Known known);

  std::unordered_map<std::string, Known> known_;
  std::vector<bool> used_;  // by id
};

// Reads a union {"as_int": 3}. INVALID_ARGUMENT: its kind is unknown, or a value is. Throws nlohmann::json::exception.
absl::StatusOr<ExportedArgument> ReadExportedArgument(const nlohmann::json& argument, ExportedValues* values);

// Appends the nodes of a graph, without assertions. INVALID_ARGUMENT names node and operator.
absl::Status ReadExportedNodes(const nlohmann::json& nodes, ExportedValues* values, ExportedProgram* program);

// Sets activation_bytes_per_row of the program and its tensors from the graph whose nodes were read into it. Counts
// nothing that the file does not state. Saturates. Throws nlohmann::json::exception.
void CountActivations(const nlohmann::json& graph, const nlohmann::json& input, ExportedValues* values,
                      ExportedProgram* program);

}  // namespace chainfleet
