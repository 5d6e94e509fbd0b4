// A .pt2 file (core/formats/exported_program.h) as a network: its operators run one after another through LibTorch's
// dispatcher, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "worker/numerics/models/exported_steps.h"
#include "worker/numerics/models/frozen_trunk.h"
#include "worker/numerics/models/input_columns.h"
#include "worker/numerics/models/model_file.h"
#include "worker/numerics/models/stored_network.h"

namespace chainfleet {

// mc_dropout drops inputs of each weight with two axes or more. INVALID_ARGUMENT, with a violation at
// sampler.mc_dropout: the network uses such a parameter that `sample` names in another way than as the weight of a
// linear layer or of an ungrouped convolution.
absl::Status CheckDroppedInputs(const ExportedProgram& program, const std::vector<std::string>& sample);

class ExportedNetwork final : public StoredNetwork {
 public:
  // The network of `file` for rows [n, input_shape...], which InputColumns reads; on a CPU it shares the file's
  // tensors. `more` parameters, which no output depends on, come last. Parameters that are not sampled (IsSampled) are
  // constants, as buffers are. INVALID_ARGUMENT with a violation at model.exported: errors of ExportedSteps::Compile,
  // ShapeOfStored and TryForward; or the graph has other inputs.
  static absl::StatusOr<std::shared_ptr<const StoredNetwork>> Load(const ExportedModel& file,
                                                                   const std::vector<int64_t>& input_shape,
                                                                   int64_t num_outputs, at::Device device,
                                                                   const std::vector<ParameterShape>& more = {},
                                                                   const std::vector<std::string>& sample = {});

  at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                    const ForwardMode& mode = {}) const override;

  // True if a trial of two chains has the outputs and gradients of each alone, up to rounding. The first call runs the
  // trial. If a later call of several chains fails, chains run one after another from then on.
  bool TakesChains() const override;

  // The size depends on the operators, the step on a trial of a row at each position. The first call runs the trial.
  RowsOfPass PassOfRows() const override;

  bool HasFeatures() const override { return trunk_ != nullptr; }
  std::vector<at::Tensor> Features(const at::Tensor& x) const override;
  at::Tensor LogitsOf(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& features,
                      const ForwardMode& mode = {}) const override;

 private:
  ExportedNetwork(NetworkShape shape, InputColumns inputs, ExportedSteps steps, std::vector<at::Tensor> tensors,
                  std::vector<size_t> parameters, std::vector<at::Tensor> statistics, bool has_convolutions);

  // The program's tensors, for one chain.
  std::vector<at::Tensor> Tensors(const std::vector<at::Tensor>& parameters) const;
  // All values of the graph before it runs, for one chain.
  std::vector<at::Tensor> Values(const std::vector<at::Tensor>& parameters, const at::Tensor& x) const;
  at::Tensor LogitsTogether(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                            const ForwardMode& mode) const;
  // [1, n, K]
  using OutputsOfChain = std::function<at::Tensor(int64_t chain, const ForwardMode& alone)>;
  // Calls `together` if the network takes several chains, or else `of_chain` for each.
  at::Tensor TogetherOrApart(int64_t chains, const ForwardMode& mode, const std::function<at::Tensor()>& together,
                             const OutputsOfChain& of_chain) const;
  static at::Tensor Apart(int64_t chains, const ForwardMode& mode, const OutputsOfChain& of_chain);
  RowsOfPass TryPass(int64_t size) const;
  bool AgreesTogether() const;

  const InputColumns inputs_;
  const ExportedSteps steps_;
  const std::vector<at::Tensor> tensors_;     // the file's; parameters are replaced
  const std::vector<size_t> parameters_;      // their indices, in layout order
  const std::vector<at::Tensor> statistics_;  // [1, channels] each, of the file; only trials use them
  const bool has_convolutions_;
  std::unique_ptr<const FrozenTrunk> trunk_;  // set by Load; null: there is none
  mutable std::once_flag tried_rows_, tried_chains_;
  mutable RowsOfPass pass_of_rows_;
  mutable std::atomic<bool> takes_chains_ = false;
};

}  // namespace chainfleet
