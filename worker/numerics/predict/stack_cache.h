// Draws as stacks on a device, kept while they are asked for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

namespace chainfleet {

inline constexpr int64_t kMaxStackBytes = int64_t{1} << 30;

// By the identity of the draws' vectors, which a worker's cache of draws has by their digest: a draw that left that
// cache and came back is another. The least recently used stacks go first. One for all
// predictors of a device, used by its thread alone.
class StackCache {
 public:
  using Draw = std::shared_ptr<const std::vector<float>>;

  explicit StackCache(at::Device device, int64_t max_bytes = kMaxStackBytes) : device_(device), max_bytes_(max_bytes) {}

  at::Device device() const { return device_; }

  // Draws [first, first + count) of `draws`, all of one size D: [count, D] float32 on the device. What is larger than
  // all of the cache is made but not kept.
  at::Tensor Get(const std::vector<Draw>& draws, size_t first, size_t count);

  int64_t bytes() const { return bytes_; }  // of what is kept

 private:
  // Weak: the memory of the host is counted elsewhere. A vector that is gone never equals one that is there.
  struct Stack {
    std::vector<std::weak_ptr<const std::vector<float>>> draws;
    at::Tensor values;
  };

  const at::Device device_;
  const int64_t max_bytes_;
  int64_t bytes_ = 0;
  std::list<Stack> stacks_;  // most recently used first
};

}  // namespace chainfleet
