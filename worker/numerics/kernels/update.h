// The fused Langevin update: one pass over memory per step. The noise is generated in registers, and drift and noise
// are summed before they change theta. Raw pointers and plain values only: the same contract for the CPU and for a GPU
// (cuda_abi.h).
//
//   f       = coupling (theta - theta_a)                       0 without an anchor
//   theta   = theta   + (noise z1 - step_size (gradient + prior_precision theta + f))
//   theta_a = theta_a + (noise z2 + step_size (f - anchor_precision theta_a))     from the old theta
//
// z1, z2: the normals of (key, kThetaNoise | kThetaANoise, t), with counters as in core/base/rng_key.h. A parameter's
// new value depends only on its own old values and its row's RowStep. On one build and instruction set the bits are the
// same for every tail of a vector, every C, row and thread count. CPU and GPU agree up to float rounding.
#pragma once

#include <cstdint>

#include "core/base/rng_key.h"
#include "worker/numerics/tensors/tensor_span.h"

namespace chainfleet {

// The memory of C rows. `theta_a` is null for kernels without an anchor.
struct UpdateBuffers {
  const TensorSpan* spans = nullptr;  // layout order
  int64_t num_spans = 0;
  int64_t num_parameters = 0;  // D
  int64_t row_stride = 0;      // floats
  int64_t rows = 0;            // C
  float* theta = nullptr;
  float* theta_a = nullptr;
  const float* gradient = nullptr;
};

// One row's scalars of one step.
struct RowStep {
  RngKey key;      // chain's key
  uint64_t t = 0;  // steps done before this one
  float step_size = 0;
  float noise = 0;  // sqrt(2 step_size T)
  float prior_precision = 0;
  float coupling = 0;          // 1 / eta
  float anchor_precision = 0;  // precision of a prior that also acts on theta_a
  bool active = true;          // false: the row is not changed
};

// Values that the pass computes for each row.
struct RowOutcome {
  float theta_check = 0;       // 0 if all new theta and theta_a are finite, else NaN
  float anchor_distance2 = 0;  // |theta - theta_a|^2 before the step
};

// Processes rows in parallel on LibTorch's threads. `steps` and `outcomes` have shape [C].
void LangevinUpdateCpu(const UpdateBuffers& buffers, const RowStep* steps, RowOutcome* outcomes);

}  // namespace chainfleet
