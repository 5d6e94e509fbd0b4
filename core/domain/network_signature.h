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
  int64_t activation_bytes_per_row = 0;                // tensors from a parameter's first use on; 0: not known
  bool is_whole() const { return type != "float32"; }  // REQUIRES: an input that WhyUnread accepts. Indices or a mask
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name);
    visit("type", self.type);
    visit("shape", self.shape);
    visit("activation_bytes_per_row", self.activation_bytes_per_row, IfAny());
  }
  bool operator==(const TensorSignature&) const = default;
};

struct NetworkSignature {
  std::string torch_version;
  std::vector<TensorSignature> inputs;
  TensorSignature output;
  std::vector<TensorSignature> parameters;  // in the file's order
  bool has_dropout = false;                 // training mode: active while a chain samples
  std::vector<TensorSignature> statistics;  // batch norm in training mode: kept with each draw
  int64_t activation_bytes_per_row = 0;     // tensors of the forward pass; 0: not known
  static void Fields(auto& self, auto&& visit) {
    visit("torch_version", self.torch_version);
    visit("inputs", self.inputs);
    visit("output", self.output, Required());
    visit("parameters", self.parameters);
    visit("has_dropout", self.has_dropout, IfAny());
    visit("statistics", self.statistics, IfAny());
    visit("activation_bytes_per_row", self.activation_bytes_per_row, IfAny());
  }
  bool operator==(const NetworkSignature&) const = default;
};

// Returns the bytes of one row's tensors that a gradient in the parameters that `sample` names needs; 0: not known.
int64_t ActivationBytes(const NetworkSignature& network, const std::vector<std::string>& sample);

// True if a parameter called `name` is sampled: if it matches one of `patterns`, in which * stands for any characters,
// or there are none.
bool IsSampled(const std::string& name, const std::vector<std::string>& patterns);

// Returns why a network cannot read rows of the shape `row`, or "". A row has the shape of the only input, or is a
// vector of several inputs side by side, each in C order. Inputs are float32, int64, int32 or bool; a row has float32
// numbers for all of them.
std::string WhyUnread(const std::vector<TensorSignature>& inputs, const std::vector<int64_t>& row);

// Returns the parameters that `sample` names in layout order. INVALID_ARGUMENT with a violation at `path` unless the
// network reads rows of `input_shape` (WhyUnread), gives float32 [n, num_outputs], and has parameters, all of them
// float32 and not empty; or with one at "sample[i]" for a pattern that matches no parameter.
absl::StatusOr<std::vector<ParameterShape>> ParametersOf(const NetworkSignature& network,
                                                         const std::vector<int64_t>& input_shape, int64_t num_outputs,
                                                         const std::string& path,
                                                         const std::vector<std::string>& sample = {});

// Returns the number of draws in a file of a chain's draws, "theta/NAME" [draw, ...]; 0 for other files.
int64_t NumDrawsOf(const std::vector<TensorSignature>& tensors);

// True if a state_dict or a file of draws with `tensors` has values of the parameter `name`.
bool HasTensor(const std::vector<TensorSignature>& tensors, const std::string& name);

// Returns why a chain of a network with `parameters` cannot start at a file with `tensors`, or "". The file has every
// parameter but those of the likelihood, as floating-point numbers of its shape, and no other tensor called `weight` or
// `bias`. Further tensors, such as buffers, do not matter.
std::string WhyNoStart(const std::vector<TensorSignature>& tensors, const std::vector<ParameterShape>& parameters);

}  // namespace chainfleet
