// Layers other than products over 16 images in lanes (lanes.h), float32, one thread, forward only.
//
// Images are [channel][y][x][16]. The arithmetic is plain IEEE float32 in one order per image, without fused
// operations, so these layers give the same bits on every processor. A NaN stays a NaN: a diverged chain must not look
// finite.
#pragma once

#include <cstdint>

namespace chainfleet {

// `size` pixels per channel.
struct LanePlanes {
  int64_t channels = 0, size = 0;
};

// Square windows. Positions outside the image are never the largest.
struct LanePool {
  int64_t channels = 0, height = 0, width = 0;  // shape of the input
  int64_t size = 1, stride = 1, padding = 0;
  int64_t out_height() const { return (height + 2 * padding - size) / stride + 1; }
  int64_t out_width() const { return (width + 2 * padding - size) / stride + 1; }
};

// x <- max(x, 0), `count` vectors of 16.
void LaneRelu(int64_t count, float* x);

// x <- f(x), `count` vectors of 16; f as the layers of core/domain/layer_spec.h say.
void LaneGelu(int64_t count, float* x);
void LaneSilu(int64_t count, float* x);
void LaneTanh(int64_t count, float* x);
void LaneSoftplus(int64_t count, float* x);
void LaneLeakyRelu(int64_t count, double slope, float* x);

// x <- x + y, `count` vectors of 16.
void LaneAdd(int64_t count, const float* y, float* x);

// Batch norm with given statistics: x <- (x - mean) / sqrt(variance + epsilon) * scale + shift, [channels] each.
void LaneBatchNorm(LanePlanes planes, const float* mean, const float* variance, double epsilon, const float* scale,
                   const float* shift, float* x);

// Filter response norm (Singh & Krishnan, CVPR 2020): x <- x / sqrt(mean over pixels of x^2 + epsilon) * scale + shift,
// then the maximum of that and `threshold` (null: none); [channels] each.
void LaneFilterResponseNorm(LanePlanes planes, double epsilon, const float* scale, const float* shift,
                            const float* threshold, float* x);

// Group norm (Wu & He, ECCV 2018): in each of `groups`, x <- (x - mean) / sqrt(variance + epsilon) over its channels
// and pixels, then times scale plus shift, [channels] each. Layer norm of flat inputs is one group of channels of one
// pixel.
void LaneGroupNorm(LanePlanes planes, int64_t groups, double epsilon, const float* scale, const float* shift, float* x);

// y[channels][out_height][out_width][16].
void LaneMaxPool(const LanePool& pool, const float* x, float* y);
void LaneAvgPool(const LanePool& pool, const float* x, float* y);  // without padding

// y[channels][16], the mean over the pixels.
void LaneMean(LanePlanes planes, const float* x, float* y);

// y[channels][height + 2 padding][width + 2 padding][16]: x surrounded by zeros.
void LanePad(const LanePool& image, const float* x, float* y);

}  // namespace chainfleet
