#include "worker/numerics/predict/stack_cache.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace chainfleet {
namespace {

bool Same(const std::weak_ptr<const std::vector<float>>& kept, const StackCache::Draw& asked) {
  return !kept.owner_before(asked) && !asked.owner_before(kept);
}

}  // namespace

at::Tensor StackCache::Get(const std::vector<Draw>& draws, size_t first, size_t count) {
  const auto begin = draws.begin() + static_cast<int64_t>(first), end = begin + static_cast<int64_t>(count);
  const auto it = std::find_if(stacks_.begin(), stacks_.end(), [&](const Stack& stack) {
    return std::equal(stack.draws.begin(), stack.draws.end(), begin, end, Same);
  });
  if (it != stacks_.end()) {
    stacks_.splice(stacks_.begin(), stacks_, it);
    return it->values;
  }
  const auto size = static_cast<int64_t>((*begin)->size());
  at::Tensor values = at::empty({static_cast<int64_t>(count), size}, at::kFloat);
  float* out = values.data_ptr<float>();
  for (auto draw = begin; draw != end; ++draw) out = std::copy((*draw)->begin(), (*draw)->end(), out);
  const auto bytes = static_cast<int64_t>(values.nbytes());
  // Room first: the device never holds more than the bound and the stack at work.
  while (!stacks_.empty() && bytes_ + bytes > max_bytes_) {
    bytes_ -= static_cast<int64_t>(stacks_.back().values.nbytes());
    stacks_.pop_back();
  }
  values = values.to(device_);
  if (bytes <= max_bytes_) {
    stacks_.push_front({{begin, end}, values});
    bytes_ += bytes;
  }
  return values;
}

}  // namespace chainfleet
