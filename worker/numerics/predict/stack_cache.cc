#include "worker/numerics/predict/stack_cache.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

namespace chainfleet {

at::Tensor StackCache::Get(const DrawStack& draws, size_t first, size_t count) {
  const auto begin = draws.theta.begin() + static_cast<int64_t>(first), end = begin + static_cast<int64_t>(count);
  std::vector<DrawId> ids;
  if (!draws.ids.empty()) {
    const auto id = draws.ids.begin() + static_cast<int64_t>(first);
    ids.assign(id, id + static_cast<int64_t>(count));
  }
  const auto it =
      std::ranges::find_if(stacks_, [&](const Stack& stack) { return stack.kind == draws.kind && stack.ids == ids; });
  if (it != stacks_.end()) {
    stacks_.splice(stacks_.begin(), stacks_, it);
    return it->values;
  }
  const auto size = static_cast<int64_t>((*begin)->size());
  at::Tensor values = at::empty({static_cast<int64_t>(count), size}, at::kFloat);
  float* out = values.data_ptr<float>();
  for (auto draw = begin; draw != end; ++draw) out = std::copy((*draw)->begin(), (*draw)->end(), out);
  const auto bytes = static_cast<int64_t>(values.nbytes());
  // Evict first, so that the device never holds more than the bound and the current stack.
  while (!stacks_.empty() && bytes_ + bytes > max_bytes_) {
    bytes_ -= static_cast<int64_t>(stacks_.back().values.nbytes());
    stacks_.pop_back();
  }
  values = values.to(device_);
  if (bytes <= max_bytes_ && !ids.empty()) {
    stacks_.push_front({draws.kind, std::move(ids), values});
    bytes_ += bytes;
  }
  return values;
}

}  // namespace chainfleet
