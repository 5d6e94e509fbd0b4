// A user's TorchScript module as a network, in evaluation mode.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "worker/numerics/models/stored_network.h"

namespace chainfleet {

// A loaded module. Concurrent threads use separate copies of it. Running it executes its author's code. Thread-safe.
class ScriptModule {
 public:
  // INVALID_ARGUMENT with a violation at model.torchscript: errors of LoadScript; the module has no method forward.
  static absl::StatusOr<std::unique_ptr<ScriptModule>> Load(const std::string& bytes, at::Device device);
  ~ScriptModule();

  // The network for inputs [n, input_shape...]. Names are those of the module's named_parameters(). `more` parameters,
  // which no output depends on, come last. INVALID_ARGUMENT: errors of ShapeOfStored and TryForward.
  absl::StatusOr<NetworkShape> Describe(const StoredNetworkUse& use) const;

  // The shapes of the module's parameters.
  const std::vector<std::vector<int64_t>>& shapes() const;

  // As StoredNetwork::Logits. Takes more parameters than the module has.
  at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x) const;

 private:
  struct Copies;

  explicit ScriptModule(std::unique_ptr<Copies> copies);

  const std::unique_ptr<Copies> copies_;
};

// A module as a network in this process. ConfinedNetwork runs it in a separate one.
class ScriptedNetwork final : public StoredNetwork {
 public:
  // Errors of ScriptModule::Load and Describe.
  static absl::StatusOr<std::shared_ptr<const StoredNetwork>> Load(const std::string& bytes,
                                                                   const std::vector<int64_t>& input_shape,
                                                                   int64_t num_outputs, at::Device device,
                                                                   const std::vector<ParameterShape>& more = {});

  at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                    const ForwardMode& mode) const override;

 private:
  ScriptedNetwork(NetworkShape shape, std::unique_ptr<ScriptModule> module)
      : StoredNetwork(std::move(shape)), module_(std::move(module)) {}

  const std::unique_ptr<const ScriptModule> module_;
};

}  // namespace chainfleet
