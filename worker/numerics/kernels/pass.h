// Elementwise passes over the rows of a few arenas: the work of samplers between gradients. Each is one pass over
// memory that generates its noise on the way. The two most frequent updates have their own interface (update.h).
// pass_ops.h defines the effect of a pass on one parameter. Raw pointers and plain values only: the same contract for
// the CPU and for a GPU (cuda_abi.h).
#pragma once

#include <cstdint>

#include "core/base/rng_key.h"
#include "worker/numerics/tensors/tensor_span.h"

namespace chainfleet {

// X(Name) for every pass, in the order of their numbers: kName is the Pass, and pass::Name of pass_ops.h its op.
// clang-format off
#define CHAINFLEET_PASSES(X)                                                                                         \
  X(AnchoredLangevin) X(Friction) X(Baoa) X(HeavyBall) X(Blend) X(Accumulate) X(Propose) X(NormalAround) X(Kick)     \
  X(Residual) X(Dot) X(Perturb) X(SampleScaled) X(Sharpen) X(BsamStep) X(Average) X(DiagonalDraw) X(Adamw) X(Turn)   \
  X(Refresh) X(Moments) X(SquareRatio) X(Scale) X(GatherNoise) X(Invert)
// clang-format on

enum class Pass : int {
#define CHAINFLEET_PASS(Name) k##Name,
  CHAINFLEET_PASSES(CHAINFLEET_PASS)
#undef CHAINFLEET_PASS
};

inline constexpr int kMaxPassArenas = 5, kMaxPassScalars = 5;

// The memory of C rows: arenas of one layout, in the order of the pass's op.
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
  bool active = true;  // false: the row is not changed
};

struct PassOutcome {
  double sum = 0;    // sum of the op's terms
  double check = 0;  // 0 if all written values are finite, else NaN
};

// Rows in parallel over LibTorch's threads; `rows` and `outcomes` are [C]. Bits do not depend on C, row or threads.
void RunPassCpu(Pass pass, const PassBuffers& buffers, const PassRow* rows, PassOutcome* outcomes);

}  // namespace chainfleet
