// A user's TorchScript module as a network, one chain at a time: a chain's parameters take the place of the module's
// own.
//
// The module is in evaluation mode and its buffers are constants, as they were stored: batch norm takes the statistics
// it came with, dropout is off, so that U(theta) is a function of theta alone. Every parameter is sampled.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/model_spec.h"

namespace chainfleet {

// Thread-safe: threads that run at once each have a copy of the module. Running it executes what its author wrote.
class ScriptedNetwork {
 public:
  // From the bytes of a .pt file and for inputs [n, input_shape...]. Names are those of the module's
  // named_parameters(); tensors with two axes or more, and a bias beside such a weight, start at
  // uniform(-1/sqrt(fan_in), 1/sqrt(fan_in)), others at the mean of their stored values; `more` parameters, which no
  // output depends on, come last. INVALID_ARGUMENT with a violation at model.torchscript if the file does not load, has
  // no float32 parameters, or if forward(x) fails, gives no float32 [n, num_outputs], gives another answer to the same
  // question, changes a buffer, or lets one example's output depend on another's input.
  static absl::StatusOr<std::shared_ptr<const ScriptedNetwork>> Load(const std::string& bytes,
                                                                     const std::vector<int64_t>& input_shape,
                                                                     int64_t num_outputs, at::Device device,
                                                                     const std::vector<ParameterShape>& more = {});
  ~ScriptedNetwork();

  const NetworkShape& shape() const { return shape_; }  // without layers

  // Outputs [1, n, K] for x [1, n, input_shape...] and `parameters[k]` [1, shape of tensor k...], on the device.
  // Autograd follows parameters that ask for it. Throws what the module throws.
  at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x) const;

 private:
  struct Copies;

  ScriptedNetwork(NetworkShape shape, std::unique_ptr<Copies> copies);

  const NetworkShape shape_;
  const std::unique_ptr<Copies> copies_;
};

// The part of Load that needs no run of the module: whether the file loads, and by which operators it computes.
absl::Status CheckScript(const std::string& bytes);

// The network of a model that is a TorchScript module, from the file's bytes, with the parameters of its likelihood;
// null for any other. `network` says inputs and outputs. INVALID_ARGUMENT if `module` is null though the model is one,
// and as Load.
absl::StatusOr<std::shared_ptr<const ScriptedNetwork>> ScriptOf(const ModelSpec& model, const std::string* module,
                                                                const NetworkShape& network, at::Device device);

}  // namespace chainfleet
