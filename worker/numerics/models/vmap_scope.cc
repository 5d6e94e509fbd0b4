#include "worker/numerics/models/vmap_scope.h"

#include <ATen/functorch/BatchedFallback.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>

#include <vector>

namespace chainfleet {
namespace {

int64_t PushLevel(int64_t chains) {
  // The fallback is a loop over chains with a warning. Without it such an operator throws.
  static const bool without_fallback = [] {
    at::functorch::setVmapFallbackEnabled(false);
    return true;
  }();
  static_cast<void>(without_fallback);
  return at::functorch::initAndPushDynamicLayer(at::functorch::TransformType::Vmap, c10::SymInt(chains),
                                                at::functorch::RandomnessType::Error);
}

}  // namespace

VmapScope::VmapScope(int64_t chains) : chains_(chains), level_(PushLevel(chains)) {}

VmapScope::~VmapScope() { at::functorch::popDynamicLayerAndDeleteMetadata(); }

at::Tensor VmapScope::Wrapped(const at::Tensor& of_chains) const {
  return at::functorch::makeBatched(of_chains, 0, level_);
}

at::Tensor VmapScope::Unwrapped(const at::Tensor& values) const {
  if (const auto* batched = at::functorch::maybeGetBatchedImpl(values); batched != nullptr) {
    return batched->value().movedim(batched->bdim(), 0);
  }
  std::vector<int64_t> shape = values.sizes().vec();
  shape.insert(shape.begin(), chains_);
  return values.unsqueeze(0).expand(shape);
}

}  // namespace chainfleet
