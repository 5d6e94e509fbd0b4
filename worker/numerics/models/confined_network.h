// A user's TorchScript module as a network whose code runs in processes of its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/base/status.h"
#include "worker/numerics/models/module_process.h"
#include "worker/numerics/models/stored_network.h"

namespace chainfleet {

// Has the bits of a ScriptedNetwork on the CPU, on any device. Each thread uses a process of its own. A pass whose
// gradients are asked for keeps its process until its graph is freed.
class ConfinedNetwork final : public StoredNetwork {
 public:
  // Errors of ModuleProcesses::Take and ScriptModule::Describe.
  static absl::StatusOr<std::shared_ptr<const StoredNetwork>> Load(std::shared_ptr<ModuleProcesses> processes,
                                                                   ModuleProcesses::File file,
                                                                   const StoredNetworkUse& use);
  ~ConfinedNetwork() override;

  at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                    const ForwardMode& mode) const override;

 private:
  ConfinedNetwork(NetworkShape shape, size_t num_parameters, std::shared_ptr<ModuleProcesses> processes,
                  ModuleProcesses::File file)
      : StoredNetwork(std::move(shape)),
        num_parameters_(num_parameters),
        processes_(std::move(processes)),
        file_(std::move(file)) {}

  const size_t num_parameters_;  // excludes those of the likelihood, which follow
  const std::shared_ptr<ModuleProcesses> processes_;
  ModuleProcesses::File file_;  // names the processes of this network
};

}  // namespace chainfleet
