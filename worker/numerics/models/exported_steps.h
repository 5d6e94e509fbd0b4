// The operators of a .pt2 file, looked up once and run often.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/formats/exported_program.h"
#include "worker/numerics/models/forward_mode.h"

namespace chainfleet {

class VmapScope;
struct ExportedPlan;  // LibTorch's types, which other sources need not read

// The steps before the first one that depends on a sampled parameter, or trains. They compute the same for each draw.
struct ExportedCut {
  size_t steps = 0;
  std::vector<int32_t> tensors, sizes;  // their values that later steps need
  bool written = false;                 // a later step may write to its arguments
};
struct CutValues {
  std::vector<at::Tensor> tensors;  // in the order of the cut
  std::vector<int64_t> sizes;
};

// Immutable; any number of threads may run it.
class ExportedSteps {
 public:
  // INVALID_ARGUMENT names the node: LibTorch has no such operator or argument, or the node still trains.
  static absl::StatusOr<ExportedSteps> Compile(const ExportedProgram& program, at::Device device);

  using See = std::function<void(const at::Tensor&)>;

  // `values` are the tensors and inputs of the program. The mode is that of one chain; it has no traces and taps.
  // `see`, if set, receives each tensor that a node computes from the inputs. Throws LibTorch's exceptions, which name
  // the node.
  at::Tensor Run(const std::vector<at::Tensor>& values, const ForwardMode& mode = {}, const See& see = nullptr) const;

  // As Run, for several chains in one call of each operator. `of_chains[i]` says that values[i] is [chains, ...];
  // others belong to all chains. The mode neither gives nor takes statistics. Returns [chains, ...]. Throws too if an
  // operator has no rule for batches.
  at::Tensor RunTogether(int64_t chains, const std::vector<at::Tensor>& values, const std::vector<bool>& of_chains,
                         const ForwardMode& mode = {}) const;

  // `sampled` are indices of the program's tensors.
  ExportedCut CutBefore(const std::vector<size_t>& sampled) const;
  // As Run, in two parts. `tensors` are those of the program. RunAfter may write to the values of the cut. With
  // `several` its tensors, arguments and result, are wrapped in this scope where they differ between chains.
  CutValues RunBefore(const ExportedCut& cut, const std::vector<at::Tensor>& values, const See& see = nullptr) const;
  at::Tensor RunAfter(const ExportedCut& cut, const std::vector<at::Tensor>& tensors, const CutValues& at_cut,
                      const ForwardMode& mode = {}, const See& see = nullptr, const VmapScope* several = nullptr) const;

 private:
  explicit ExportedSteps(std::shared_ptr<const ExportedPlan> plan) : plan_(std::move(plan)) {}

  std::shared_ptr<const ExportedPlan> plan_;
};

// An empty tensor for the bytes of `tensor`, on the CPU.
at::Tensor EmptyFor(const ExportedTensor& tensor);

}  // namespace chainfleet
