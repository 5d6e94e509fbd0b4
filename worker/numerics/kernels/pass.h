// Elementwise passes over the rows of a few arenas: what samplers do between gradients. Each is one pass over memory
// with its noise made on the way; the two hottest updates have an interface of their own (update.h). What a pass does
// to one parameter is in pass_ops.h. Raw pointers and plain values only: the same contract for the CPU and for a GPU
// (cuda_abi.h).
#pragma once

#include <cstdint>

#include "core/base/rng_key.h"
#include "worker/numerics/tensors/tensor_span.h"

namespace chainfleet {

// One op of pass_ops.h each; pass_list.h lists them once more.
enum class Pass : int {
  kAnchoredLangevin,
  kFriction,
  kBaoa,
  kHeavyBall,
  kBlend,
  kAccumulate,
  kPropose,
  kNormalAround,
  kKick,
  kResidual,
  kDot,
  kPerturb,
  kSampleScaled,
  kSharpen,
  kBsamStep,
  kAverage,
  kDiagonalDraw,
};

inline constexpr int kMaxPassArenas = 5, kMaxPassScalars = 5;

// The memory of C rows: arenas of one layout, as the op of the pass wants them.
struct PassBuffers {
  const TensorSpan* spans = nullptr;  // layout order
  int64_t num_spans = 0;
  int64_t num_parameters = 0;  // D
  int64_t row_stride = 0;      // floats
  int64_t rows = 0;            // C
  float* arena[kMaxPassArenas] = {};
  RngStream stream = RngStream::kThetaNoise;
};

// One row's scalars. Its normals are those of (key, stream, t).
struct PassRow {
  RngKey key;
  uint64_t t = 0;
  float s[kMaxPassScalars] = {};
  bool active = true;  // false: the row is left as it is
};

struct PassOutcome {
  double sum = 0;    // of the op's terms
  double check = 0;  // 0 if all that was written is finite, else NaN
};

// Rows in parallel over LibTorch's threads; `rows` and `outcomes` are [C]. Bits do not depend on C, row or threads.
void RunPassCpu(Pass pass, const PassBuffers& buffers, const PassRow* rows, PassOutcome* outcomes);

}  // namespace chainfleet
