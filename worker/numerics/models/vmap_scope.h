// Chains as one batch for operators that know nothing of chains: LibTorch's vmap (functorch).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chainfleet {

// While it lives, operators of this thread see one chain of a wrapped tensor, and compute all chains in one call. An
// operator that has no rule for batches throws. Autograd follows the tensors of all chains, also after the scope.
class VmapScope {
 public:
  explicit VmapScope(int64_t chains);
  ~VmapScope();
  VmapScope(const VmapScope&) = delete;
  VmapScope& operator=(const VmapScope&) = delete;

  int64_t chains() const { return chains_; }
  at::Tensor Wrapped(const at::Tensor& of_chains) const;  // takes [chains, ...]
  at::Tensor Unwrapped(const at::Tensor& values) const;   // returns [chains, ...]

 private:
  const int64_t chains_, level_;
};

}  // namespace chainfleet
