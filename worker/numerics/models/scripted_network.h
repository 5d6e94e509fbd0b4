// A user's TorchScript module as a network, one chain at a time: a chain's parameters replace the module's own.
//
// The module is in evaluation mode, and its buffers are constants as stored: batch norm uses the stored statistics and
// dropout is off, so U(theta) is a function of theta only. Every parameter is sampled.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/model_spec.h"

namespace chainfleet {

// Thread-safe: concurrent threads use separate copies of the module. Running it executes its author's code.
class ScriptedNetwork {
 public:
  // Loads the bytes of a .pt file, for inputs [n, input_shape...]. Names are those of the module's named_parameters().
  // Tensors with two axes or more, and biases of such weights, start at uniform(-1/sqrt(fan_in), 1/sqrt(fan_in));
  // others at the mean of their stored values. `more` parameters, which no output depends on, come last.
  // INVALID_ARGUMENT with a violation at model.torchscript: the file does not load or has no float32 parameters; or
  // forward(x) fails, does not return float32 [n, num_outputs], returns different outputs for the same inputs, changes
  // a buffer, or makes one example's output depend on another's input.
  static absl::StatusOr<std::shared_ptr<const ScriptedNetwork>> Load(const std::string& bytes,
                                                                     const std::vector<int64_t>& input_shape,
                                                                     int64_t num_outputs, at::Device device,
                                                                     const std::vector<ParameterShape>& more = {});
  ~ScriptedNetwork();

  const NetworkShape& shape() const { return shape_; }  // without layers

  // Outputs [1, n, K] for x [1, n, input_shape...] and `parameters[k]` [1, shape of tensor k...], on the device.
  // Differentiable by autograd in parameters that require gradients. Throws the module's exceptions.
  at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x) const;

 private:
  struct Copies;

  ScriptedNetwork(NetworkShape shape, std::unique_ptr<Copies> copies);

  const NetworkShape shape_;
  const std::unique_ptr<Copies> copies_;
};

// The checks of Load that do not run the module: whether the file loads, and which operators it uses.
absl::Status CheckScript(const std::string& bytes);

// The network of a model that is a TorchScript module, from the file's bytes, with the parameters of its likelihood;
// null for other models. `network` gives inputs and outputs. INVALID_ARGUMENT: the model is a module but `module` is
// null; also the errors of Load.
absl::StatusOr<std::shared_ptr<const ScriptedNetwork>> ScriptOf(const ModelSpec& model, const std::string* module,
                                                                const NetworkShape& network, at::Device device);

}  // namespace chainfleet
