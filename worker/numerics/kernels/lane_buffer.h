// Memory for values of images in lanes (lanes.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>

#include "hwy/aligned_allocator.h"

namespace chainfleet {

// Zeroed, on 64 bytes.
template <typename T>
struct LaneBuffer {
  LaneBuffer() = default;
  explicit LaneBuffer(int64_t size) : memory(hwy::AllocateAligned<T>(size)) {
    if (memory == nullptr) throw std::bad_alloc();
    std::fill_n(memory.get(), size, T{0});
  }
  T* data() const { return memory.get(); }
  hwy::AlignedFreeUniquePtr<T[]> memory;
};

}  // namespace chainfleet
