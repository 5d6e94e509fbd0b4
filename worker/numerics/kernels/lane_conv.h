// A plain convolution over 16 images in lanes (lanes.h), float32, one thread, forward only.
#pragma once

#include <cstdint>

namespace chainfleet {

// Extents of one image; `in_height` and `in_width` include the zero border.
struct LaneConvShape {
  int64_t in_channels = 0, out_channels = 0, groups = 1, kernel = 0, stride = 1;
  int64_t in_height = 0, in_width = 0;
  int64_t out_height() const { return (in_height - kernel) / stride + 1; }
  int64_t out_width() const { return (in_width - kernel) / stride + 1; }
};

// y[out_channels][out_height][out_width][16] of x[in_channels][in_height][in_width][16], weight
// [out_channels][in_channels / groups][kernel][kernel] and bias [out_channels] (null: none). Every output is one chain
// of fused multiply-adds over (channel, row, column) of the window.
void LaneConvForward(const LaneConvShape& shape, const float* weight, const float* bias, const float* x, float* y);

}  // namespace chainfleet
