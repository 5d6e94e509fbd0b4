// Copies from a GPU to the host for which the host need not wait, through a ring of pinned memory. Only for the device
// loop's thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "worker/numerics/tensors/late.h"

namespace chainfleet {

// Allocates all that copies of up to `bytes` from `device` need. A step calls this before it moves a row, so that no
// row has moved if memory is short.
void ReserveLateCopies(int64_t bytes, at::Device device);

// Queues a copy of the first `bytes` of a contiguous tensor of a GPU. The result waits for the copy. If the ring is
// full, this waits for the oldest copy in it.
std::function<std::vector<char>()> QueueCopy(const at::Tensor& from, int64_t bytes);

// As QueueCopy, for the values of the first `rows` rows of `from`.
template <typename T>
Late<T> CopyLate(const at::Tensor& from, int64_t rows) {
  const int64_t bytes = rows * static_cast<int64_t>(sizeof(T));
  return Late<T>([rows, wait = QueueCopy(from, bytes)] {
    const std::vector<char> home = wait();
    std::vector<T> values(rows);
    std::memcpy(values.data(), home.data(), home.size());
    return values;
  });
}

}  // namespace chainfleet
