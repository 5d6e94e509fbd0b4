// The part of an exported network before its first sampled parameter, dropout or batch norm over mini-batches. It
// computes the same for each draw, so it needs to run only once for each row.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "worker/numerics/models/exported_steps.h"

namespace chainfleet {

// Thread-safe. Throws LibTorch's exceptions.
class FrozenTrunk {
 public:
  using SomeInputs = std::function<std::vector<at::Tensor>(int64_t)>;

  // Null if trials show that the network cannot be cut there: values at the cut have no axis for the rows, or share
  // memory that is written to. Each trial has the program's tensors, with other values of those that `sampled`
  // (indices) names: under their own, which are often 0, the rows of a feature may not count. `some_inputs(n)` makes
  // the inputs of n different rows.
  static std::unique_ptr<const FrozenTrunk> Find(const ExportedSteps& steps,
                                                 const std::vector<std::vector<at::Tensor>>& trials,
                                                 const std::vector<size_t>& sampled, const SomeInputs& some_inputs);

  using See = std::function<void(const at::Tensor&)>;

  // Tensors [n, ...] that the rest of the network needs of the inputs [n, ...]. `see`: see ExportedSteps::Run.
  std::vector<at::Tensor> Features(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& inputs,
                                   const See& see = nullptr) const;

  // The network's outputs [n, K] for rows with these features, which it may write to. `several`: see
  // ExportedSteps::RunAfter.
  at::Tensor Outputs(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& features,
                     const ForwardMode& mode = {}, const See& see = nullptr, const VmapScope* several = nullptr) const;

 private:
  // The axis of a tensor that holds `per_row` values of each row, row by row.
  struct RowAxis {
    int64_t axis = 0, per_row = 1;
  };
  // A size of the graph for n rows: slope n + offset.
  struct Size {
    int64_t slope = 0, offset = 0;
  };

  explicit FrozenTrunk(const ExportedSteps& steps) : steps_(steps) {}
  bool Learn(const std::vector<at::Tensor>& tensors, const SomeInputs& some_inputs);
  bool Agrees(const std::vector<at::Tensor>& tensors, std::vector<at::Tensor> inputs) const;

  const ExportedSteps steps_;
  ExportedCut cut_;
  std::vector<std::optional<RowAxis>> axes_;  // one for each tensor at the cut; none: all rows share it
  std::vector<at::Tensor> shared_;            // the tensors without such an axis
  std::vector<Size> sizes_;
};

}  // namespace chainfleet
