// A cache of stacked draws on a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <vector>

#include "worker/numerics/predict/draw_stack.h"

namespace chainfleet {

inline constexpr int64_t kMaxStackBytes = int64_t{1} << 30;

// Keyed by the digests of the draws' objects (DrawId), so that draws that left the host's cache and were read again are
// found here. Evicts the least recently used stacks. All predictors of a device share one, on one thread.
class StackCache {
 public:
  explicit StackCache(at::Device device, int64_t max_bytes = kMaxStackBytes) : device_(device), max_bytes_(max_bytes) {}

  at::Device device() const { return device_; }

  // Returns draws [first, first + count) of `draws`, all of size D: [count, D] float32 on the device. A stack that is
  // larger than the whole cache, or has no ids, is made but not kept.
  at::Tensor Get(const DrawStack& draws, size_t first, size_t count);

  int64_t bytes() const { return bytes_; }  // size of the kept stacks

 private:
  struct Stack {
    DrawKind kind = DrawKind::kTheta;
    std::vector<DrawId> ids;
    at::Tensor values;
  };

  const at::Device device_;
  const int64_t max_bytes_;
  int64_t bytes_ = 0;
  std::list<Stack> stacks_;  // most recently used first
};

}  // namespace chainfleet
