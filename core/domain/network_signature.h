// Describes the network of a .pt2 file: enough to check a job against the data, without the file and without torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/fields.h"
#include "core/domain/parameter_shape.h"

namespace chainfleet {

// A tensor; inputs and outputs are described without their first axis, the batch.
struct TensorSignature {
  std::string name;
  std::string type;  // "float32", as PyTorch writes it
  std::vector<int64_t> shape;
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name);
    visit("type", self.type);
    visit("shape", self.shape);
  }
  bool operator==(const TensorSignature&) const = default;
};

struct NetworkSignature {
  std::string torch_version;
  std::vector<TensorSignature> inputs;
  TensorSignature output;
  std::vector<TensorSignature> parameters;  // in the file's order
  static void Fields(auto& self, auto&& visit) {
    visit("torch_version", self.torch_version);
    visit("inputs", self.inputs);
    visit("output", self.output, Required());
    visit("parameters", self.parameters);
  }
  bool operator==(const NetworkSignature&) const = default;
};

// Returns the parameters in layout order. INVALID_ARGUMENT with a violation at `path` unless the network takes float32
// [n, input_shape...], gives float32 [n, num_outputs], and has parameters, all of them float32 and not empty.
absl::StatusOr<std::vector<ParameterShape>> ParametersOf(const NetworkSignature& network,
                                                         const std::vector<int64_t>& input_shape, int64_t num_outputs,
                                                         const std::string& path);

}  // namespace chainfleet
