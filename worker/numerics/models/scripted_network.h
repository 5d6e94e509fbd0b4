// A user's TorchScript module as a network, in evaluation mode.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "worker/numerics/models/stored_network.h"

namespace chainfleet {

// Concurrent threads use separate copies of the module. Running it executes its author's code.
class ScriptedNetwork final : public StoredNetwork {
 public:
  // Loads the bytes of a .pt file, for inputs [n, input_shape...]. Names are those of the module's named_parameters().
  // `more` parameters, which no output depends on, come last. INVALID_ARGUMENT with a violation at model.torchscript:
  // the file does not load; errors of ShapeOfStored and TryForward.
  static absl::StatusOr<std::shared_ptr<const StoredNetwork>> Load(const std::string& bytes,
                                                                   const std::vector<int64_t>& input_shape,
                                                                   int64_t num_outputs, at::Device device,
                                                                   const std::vector<ParameterShape>& more = {});
  ~ScriptedNetwork() override;

  at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                    const ForwardMode& mode) const override;

 private:
  struct Copies;

  ScriptedNetwork(NetworkShape shape, std::unique_ptr<Copies> copies);

  const std::unique_ptr<Copies> copies_;
};

// The checks of Load that do not run the module: whether the file loads, and which operators it uses.
absl::Status CheckScript(const std::string& bytes);

}  // namespace chainfleet
