// Draws as stacks on a device, kept while they are asked for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <vector>

#include "worker/numerics/predict/draw_stack.h"

namespace chainfleet {

inline constexpr int64_t kMaxStackBytes = int64_t{1} << 30;

// By the digests of the draws' objects (DrawId), so that draws which left the host's cache and were read anew are found
// here. The least recently used stacks go first. One for all predictors of a device, used by its thread alone.
class StackCache {
 public:
  explicit StackCache(at::Device device, int64_t max_bytes = kMaxStackBytes) : device_(device), max_bytes_(max_bytes) {}

  at::Device device() const { return device_; }

  // Draws [first, first + count) of `draws`, all of one size D: [count, D] float32 on the device. What is larger than
  // all of the cache, or has no ids, is made but not kept.
  at::Tensor Get(const DrawStack& draws, size_t first, size_t count);

  int64_t bytes() const { return bytes_; }  // of what is kept

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
