// Rows on a device, kept between calls for the same rows under other draws.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>

namespace chainfleet {

// Bound on the rows of one shard: 1024 images of [3, 148, 148].
inline constexpr int64_t kMaxDeviceRowBytes = int64_t{256} << 20;

// Rows kept on the device. The caller that asks for these rows owns them, so no other caller uses them. Not
// thread-safe.
struct DeviceRows {
  int64_t room = kMaxDeviceRowBytes;     // bytes that may still be kept; a block that does not fit is made again
  std::map<int64_t, at::Tensor> blocks;  // by their first row: [1, rows, input_shape...] float32 on the device
};

}  // namespace chainfleet
