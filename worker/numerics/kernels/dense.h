// Dense layers over images in lanes (lanes.h), float32, one thread. y = W x + b with W [outputs, inputs].
//
// Products are register blocks of outputs x images. Sums run over inputs (or images) in order, so every element is one
// chain of fused multiply-adds, however the work is divided.
#pragma once

#include <cstdint>

namespace chainfleet {

struct DenseShape {
  int64_t inputs = 0, outputs = 0;
};

// y[g][outputs][16] of x[g][inputs][16] for `groups` <= kSliceGroups groups.
void DenseForward(DenseShape shape, const float* weight, const float* bias, const float* x, int64_t groups, bool relu,
                  float* y);

// dx[g][inputs][16] = W' delta, zero where the activation x <= 0: x is the output of a rectifier, so dx is the gradient
// before it.
void DenseInputGradient(DenseShape shape, const float* weight, const float* delta, const float* x, int64_t groups,
                        float* dx);

// Rows [first, last) of dW[o][i] = sum over images of delta[o] x[i], and of db. `delta` is [groups][outputs][16], zero
// in missing lanes. `rows` holds the layer's inputs as [images][RowStride(inputs)], readable to the stride's end.
// Overwrites.
void DenseWeightGradient(DenseShape shape, const float* delta, const float* rows, int64_t images, int64_t first,
                         int64_t last, float* dweight, float* dbias);

}  // namespace chainfleet
