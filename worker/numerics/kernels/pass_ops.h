// The operations that the passes of pass.h apply to one parameter, one source for CPU and GPU.
//
// Apply(s, x, z): `s` holds the row's scalars, `x` the parameter's value in each arena (in the order of
// kernels/pass.h), `z` a standard normal (0 unless kNoises). Arenas whose bit is set in kWritten get the new x. Returns
// the parameter's term of the row's sum.
#pragma once

#include <cmath>

#include "core/base/rng_key.h"

#if defined(__CUDACC__)
#define CHAINFLEET_OP static __host__ __device__ inline
#else
#define CHAINFLEET_OP __attribute__((always_inline)) static inline
#endif

namespace chainfleet::pass {

// x = {theta, anchor, gradient}, s = {step_size, noise, prior_precision, coupling}: a Langevin step towards a fixed
// anchor. Sum: |theta - anchor|^2 before the step.
struct AnchoredLangevin {
  static constexpr int kArenas = 3, kWritten = 1;
  static constexpr int kNoises = 1;
  CHAINFLEET_OP float Apply(const float* s, float* x, float z) {
    const float gap = x[0] - x[1];
    const float drift = x[2] + s[2] * x[0] + s[3] * gap;
    x[0] += s[1] * z - s[0] * drift;
    return gap * gap;
  }
};

// x = {theta, v, gradient}, s = {1 - friction, step_size, noise, prior_precision}:
// v <- (1 - a) v - alpha grad + noise z; theta <- theta + v.
struct Friction {
  static constexpr int kArenas = 3, kWritten = 3;
  static constexpr int kNoises = 1;
  CHAINFLEET_OP float Apply(const float* s, float* x, float z) {
    x[1] = s[0] * x[1] + (s[2] * z - s[1] * (x[2] + s[3] * x[0]));
    x[0] += x[1];
    return 0;
  }
};

// x = {theta, p, gradient}, s = {epsilon, c, noise, prior_precision}: kick, half drift, Ornstein-Uhlenbeck step
// p <- c p + noise z, half drift.
struct Baoa {
  static constexpr int kArenas = 3, kWritten = 3;
  static constexpr int kNoises = 1;
  CHAINFLEET_OP float Apply(const float* s, float* x, float z) {
    const float half = 0.5f * s[0];
    const float kicked = x[1] - s[0] * (x[2] + s[3] * x[0]);
    x[1] = s[1] * kicked + s[2] * z;
    x[0] += half * kicked + half * x[1];
    return 0;
  }
};

// x = {theta, v, gradient}, s = {momentum, step_size, prior_precision}: v <- b v + grad; theta <- theta - alpha v.
struct HeavyBall {
  static constexpr int kArenas = 3, kWritten = 3;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    x[1] = s[0] * x[1] + (x[2] + s[2] * x[0]);
    x[0] -= s[1] * x[1];
    return 0;
  }
};

// x = {a, b}, s = {p, q}: a <- p a + q b.
struct Blend {
  static constexpr int kArenas = 2, kWritten = 1;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    x[0] = s[0] * x[0] + s[1] * x[1];
    return x[0] * x[0];
  }
};

// x = {a, b}, s = {q, keep}: a <- a + q b, or q b if keep is 0.
struct Accumulate {
  static constexpr int kArenas = 2, kWritten = 1;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    x[0] = (s[1] != 0 ? x[0] : 0.0f) + s[0] * x[1];
    return 0;
  }
};

// x = {to, from, gradient}, s = {noise, step_size, prior_precision}: to <- from - step_size grad + noise z. Sum: |z|^2.
struct Propose {
  static constexpr int kArenas = 3, kWritten = 1;
  static constexpr int kNoises = 1;
  CHAINFLEET_OP float Apply(const float* s, float* x, float z) {
    x[0] = x[1] + (s[0] * z - s[1] * (x[2] + s[2] * x[1]));
    return z * z;
  }
};

// x = {to, from}, s = {noise}: to <- from + noise z. Sum: |z|^2.
struct NormalAround {
  static constexpr int kArenas = 2, kWritten = 1;
  static constexpr int kNoises = 1;
  CHAINFLEET_OP float Apply(const float* s, float* x, float z) {
    x[0] = x[1] + s[0] * z;
    return z * z;
  }
};

// x = {p, gradient, theta}, s = {epsilon, prior_precision}: p <- p - epsilon grad. Sum: |p|^2 after the kick.
struct Kick {
  static constexpr int kArenas = 3, kWritten = 1;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    x[0] -= s[0] * (x[1] + s[1] * x[2]);
    return x[0] * x[0];
  }
};

// x = {to, from, gradient}, s = {step_size, prior_precision}: nothing is written. Sum: |to - from + step_size grad|^2.
struct Residual {
  static constexpr int kArenas = 3, kWritten = 0;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    const float gap = x[0] - x[1] + s[0] * (x[2] + s[1] * x[1]);
    return gap * gap;
  }
};

// x = {a, b}: nothing is written. Sum: a b.
struct Dot {
  static constexpr int kArenas = 2, kWritten = 0;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float*, float* x, float) { return x[0] * x[1]; }
};

// x = {to, from, gradient}, s = {q}: to <- from + q gradient.
struct Perturb {
  static constexpr int kArenas = 3, kWritten = 1;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    x[0] = x[1] + s[0] * x[2];
    return 0;
  }
};

// x = {to, theta, scale}, s = {1 / sqrt(N)}: to <- theta + z / sqrt(N scale).
struct SampleScaled {
  static constexpr int kArenas = 3, kWritten = 1;
  static constexpr int kNoises = 1;
  CHAINFLEET_OP float Apply(const float* s, float* x, float z) {
    x[0] = x[1] + s[0] * z / sqrtf(x[2]);
    return 0;
  }
};

// x = {to, theta, gradient, scale, root}, s = {rho, w, keep}: to <- theta + rho gradient / scale; root <- root + w
// sqrt(scale) |gradient|, without the old root if keep is 0.
struct Sharpen {
  static constexpr int kArenas = 5, kWritten = 17;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    x[0] = x[1] + s[0] * x[2] / x[3];
    x[4] = (s[2] != 0 ? x[4] : 0.0f) + s[1] * (sqrtf(x[3]) * fabsf(x[2]));
    return 0;
  }
};

// x = {theta, m, scale, gradient, root}, s = {beta1, beta2, learning_rate, delta, damping}: m <- b1 m + (1 - b1)
// (gradient + delta theta); theta <- theta - h m / scale; scale <- b2 scale + (1 - b2)(root + damping + delta).
struct BsamStep {
  static constexpr int kArenas = 5, kWritten = 7;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    x[1] = s[0] * x[1] + (1 - s[0]) * (x[3] + s[3] * x[0]);
    x[0] -= s[2] * x[1] / x[2];
    x[2] = s[1] * x[2] + (1 - s[1]) * (x[4] + s[4] + s[3]);
    return 0;
  }
};

// x = {mean, mean_low, spread, spread_low, theta}, s = {1 / n}: running mean and variance (divisor n) over n snapshots,
// including the new one (Welford: no difference of large squares). Each is a sum of two floats (Dekker), because a
// single float would lose the contributions of small steps.
struct Average {
  static constexpr int kArenas = 5, kWritten = 15;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP void Add(float* high, float* low, float term) {
    const float sum = *high + term, back = sum - *high;
    const float error = (*high - (sum - back)) + (term - back) + *low;
    *high = sum + error;
    *low = error - (*high - sum);
  }
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    const float before = (x[4] - x[0]) - x[1];
    Add(x, x + 1, s[0] * before);
    const float after = (x[4] - x[0]) - x[1];
    Add(x + 2, x + 3, s[0] * ((before * after - x[2]) - x[3]));
    return 0;
  }
};

// x = {to, mean, spread}, s = {sqrt(scale)}: to <- mean + sqrt(scale) sqrt(max(spread, 1e-30)) z.
struct DiagonalDraw {
  static constexpr int kArenas = 3, kWritten = 1;
  static constexpr int kNoises = 1;
  CHAINFLEET_OP float Apply(const float* s, float* x, float z) {
    x[0] = x[1] + s[0] * sqrtf(x[2] > 1e-30f ? x[2] : 1e-30f) * z;
    return 0;
  }
};

// x = {theta, m, v, gradient}, s = {beta1, beta2, rate, epsilon, decay}: m <- b1 m + (1 - b1) gradient; v <- b2 v +
// (1 - b2) gradient^2; theta <- theta - rate m / (sqrt(v) + epsilon) - decay theta.
struct Adamw {
  static constexpr int kArenas = 4, kWritten = 7;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    x[1] = s[0] * x[1] + (1 - s[0]) * x[3];
    x[2] = s[1] * x[2] + (1 - s[1]) * (x[3] * x[3]);
    x[0] -= s[2] * x[1] / (sqrtf(x[2]) + s[3]) + s[4] * x[0];
    return 0;
  }
};

// x = {to_theta, to_u, theta, u, gradient}, s = {keep, force, way}: to_u <- keep u + force gradient; to_theta <- theta
// + way to_u.
struct Turn {
  static constexpr int kArenas = 5, kWritten = 3;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    x[1] = s[0] * x[3] + s[1] * x[4];
    x[0] = x[2] + s[2] * x[1];
    return 0;
  }
};

// x = {u, gradient}, s = {keep, force, noise}: u <- keep u + force gradient + noise z. Sum: |u|^2.
struct Refresh {
  static constexpr int kArenas = 2, kWritten = 1;
  static constexpr int kNoises = 1;
  CHAINFLEET_OP float Apply(const float* s, float* x, float z) {
    x[0] = s[0] * x[0] + s[1] * x[1] + s[2] * z;
    return x[0] * x[0];
  }
};

// x = {mean, variance, theta}, s = {share}: running moments, in which theta has this share of all weights so far. Sum:
// the variances.
struct Moments {
  static constexpr int kArenas = 3, kWritten = 3;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    const float before = x[2] - x[0];
    x[0] += s[0] * before;
    x[1] += s[0] * (before * (x[2] - x[0]) - x[1]);
    return x[1];
  }
};

// x = {a, b}: nothing is written. Sum: a^2 / b where b is above 0.
struct SquareRatio {
  static constexpr int kArenas = 2, kWritten = 0;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float*, float* x, float) { return x[1] > 0 ? x[0] * x[0] / x[1] : 0.0f; }
};

// x = {out, a, b}: out <- a b. Sum: a^2 b.
struct Scale {
  static constexpr int kArenas = 3, kWritten = 1;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float*, float* x, float) {
    x[0] = x[1] * x[2];
    return x[1] * x[0];
  }
};

// x = {noise, a, b}, s = {keep}: noise <- noise + (a - b)^2 / 2, without the old noise if keep is 0. Sum: the noise.
struct GatherNoise {
  static constexpr int kArenas = 3, kWritten = 1;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    const float gap = x[1] - x[2];
    x[0] = (s[0] != 0 ? x[0] : 0.0f) + 0.5f * (gap * gap);
    return x[0];
  }
};

// x = {out, a}, s = {q, least}: out <- q / a, with at least `least` for a.
struct Invert {
  static constexpr int kArenas = 2, kWritten = 1;
  static constexpr int kNoises = 0;
  CHAINFLEET_OP float Apply(const float* s, float* x, float) {
    x[0] = s[0] / (x[1] > s[1] ? x[1] : s[1]);
    return 0;
  }
};

}  // namespace chainfleet::pass
