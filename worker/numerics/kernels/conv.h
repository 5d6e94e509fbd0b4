// Convolution + bias + ReLU + 2x2 max pool as one layer over 16 images in lanes (lanes.h), float32, one thread,
// stride 1.
//
// Only the inputs are stored at full resolution: the forward pass pools its register block, the backward pass expands
// two rows of the gradient at a time.
#pragma once

#include <cstdint>

namespace chainfleet {

// The padded input is [in_channels][in_height][in_width][16], border included. Before pooling the output is in_height -
// kernel + 1 by in_width - kernel + 1; an odd last row or column is dropped. kernel is 3 or 5.
struct ConvShape {
  int64_t in_channels = 0, out_channels = 0, kernel = 0;
  int64_t in_height = 0, in_width = 0;  // with padding
  int64_t pooled_height() const { return (in_height - kernel + 1) / 2; }
  int64_t pooled_width() const { return (in_width - kernel + 1) / 2; }
  int64_t input_size() const { return in_channels * in_height * in_width; }  // values of one image
  int64_t output_size() const { return out_channels * pooled_height() * pooled_width(); }
  int64_t num_weights() const { return out_channels * in_channels * kernel * kernel; }
};

// Writes y[out_channels][pooled_height][pooled_width][16] and, of the same shape, the index of the largest of the four
// pixels (row-major, the first if equal).
void ConvReluPoolForward(const ConvShape& shape, const float* weight, const float* bias, const float* x, float* y,
                         uint8_t* largest);

// `dy` is the gradient of y (shapes as above, ignored where y <= 0). Adds to the sums over images, separate for each
// lane: dweight[num_weights][16] and dbias[out_channels][16]. `dx`, of x's shape, is overwritten with the gradient of
// the padded input; null if it is not needed. `scratch`: out_channels * 4 * pooled_width * 16 floats, on 64 bytes.
void ConvReluPoolBackward(const ConvShape& shape, const float* weight, const float* x, const float* y,
                          const uint8_t* largest, const float* dy, float* dweight, float* dbias, float* dx,
                          float* scratch);

// out[i] = sum over s < slices and lanes l of in[s][i][l], i < count, in that order.
void SumLanes(const float* in, int64_t slices, int64_t count, float* out);

}  // namespace chainfleet
