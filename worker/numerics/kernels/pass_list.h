// Maps each Pass to its op, for both devices.
#pragma once

#include "worker/numerics/kernels/pass.h"
#include "worker/numerics/kernels/pass_ops.h"

// X(name) for every pass; the op of kName is pass::Name.
#define CHAINFLEET_PASSES(X)                                                                                         \
  X(AnchoredLangevin)                                                                                                \
  X(Friction)                                                                                                        \
  X(Baoa)                                                                                                            \
  X(HeavyBall)                                                                                                       \
  X(Blend) X(Accumulate) X(Propose) X(NormalAround) X(Kick) X(Residual) X(Dot) X(Perturb) X(SampleScaled) X(Sharpen) \
      X(BsamStep) X(Average) X(DiagonalDraw) X(Adamw) X(Turn) X(Refresh) X(Moments) X(SquareRatio) X(Scale) \
      X(GatherNoise) X(Invert)
