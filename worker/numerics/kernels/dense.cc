#include "worker/numerics/kernels/dense.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/numerics/kernels/dense.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "worker/numerics/kernels/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace chainfleet {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int64_t kWidth = hn::MaxLanes(D());
constexpr int64_t kPerGroup = kLanes / kWidth;
// 32 vector registers hold 6 x 4 sums, their inputs and a weight; 16 registers 6 x 2.
constexpr int64_t kMaxColumns = kWidth == 16 ? 4 : 2;
constexpr int64_t kBlock = 6;
constexpr int64_t kDepth = 128;  // inputs per pass: 4 vectors of each stay in the first-level cache

struct Product {
  const float* w;  // element (m, k) at m * m_stride + k * k_stride
  int64_t m_stride, k_stride;
  const float* x;  // [group][k][16]
  const float* bias;
  const float* mask;  // like y, or null
  bool relu;
  float* y;  // [group][m][16]
  int64_t m, k;
};

// kForward: weights of consecutive k are adjacent; otherwise those of consecutive m are.
template <int64_t kRows, int64_t kColumns, bool kForward>
HWY_INLINE void Tile(const Product& p, int64_t m, int64_t column, int64_t k_first, int64_t k_last) {
  const D d;
  V sum[kRows][kColumns];
  const float* x[kColumns];
  float* y[kColumns];
  HWY_UNROLL(4)
  for (int64_t c = 0; c < kColumns; ++c) {
    const int64_t group = (column + c) / kPerGroup, offset = (column + c) % kPerGroup * kWidth;
    x[c] = p.x + (group * p.k + k_first) * kLanes + offset;
    y[c] = p.y + (group * p.m + m) * kLanes + offset;
    HWY_UNROLL(6)
    for (int64_t r = 0; r < kRows; ++r) {
      sum[r][c] = k_first > 0 ? hn::Load(d, y[c] + r * kLanes) : p.bias ? hn::Set(d, p.bias[m + r]) : hn::Zero(d);
    }
  }
  const int64_t m_stride = kForward ? p.m_stride : 1, k_stride = kForward ? 1 : p.k_stride;
  const float* w = p.w + m * m_stride + k_first * k_stride;
  // Prefetch the next tile's weights, one cache line of each row at a time: the stretch of a row is too short for the
  // hardware prefetcher.
  const float* next = kForward && m + 2 * kRows <= p.m ? w + kRows * m_stride : w;
  for (int64_t k = k_first; k < k_last;) {
    if constexpr (kForward) {
      HWY_UNROLL(6)
      for (int64_t r = 0; r < kRows; ++r) hwy::Prefetch(next + r * m_stride);
      next += kLanes;
    }
    const int64_t line_end = HWY_MIN(k + kLanes, k_last);
    for (; k < line_end; ++k, w += k_stride) {
      V in[kColumns];
      HWY_UNROLL(4)
      for (int64_t c = 0; c < kColumns; ++c) {
        in[c] = hn::Load(d, x[c]);
        x[c] += kLanes;
      }
      HWY_UNROLL(6)
      for (int64_t r = 0; r < kRows; ++r) {
        const V weight = hn::Set(d, w[r * m_stride]);
        HWY_UNROLL(4)
        for (int64_t c = 0; c < kColumns; ++c) sum[r][c] = hn::MulAdd(weight, in[c], sum[r][c]);
      }
    }
  }
  const bool last = k_last == p.k;
  const V zero = hn::Zero(d);
  HWY_UNROLL(4)
  for (int64_t c = 0; c < kColumns; ++c) {
    HWY_UNROLL(6)
    for (int64_t r = 0; r < kRows; ++r) {
      V out = sum[r][c];
      // Keep a NaN: a diverged chain must not look finite.
      if (last && p.relu) out = hn::IfThenElse(hn::Lt(out, zero), zero, out);
      if (last && p.mask) {
        out = hn::IfThenElseZero(hn::Gt(hn::Load(d, p.mask + (y[c] - p.y) + r * kLanes), zero), out);
      }
      hn::Store(out, d, y[c] + r * kLanes);
    }
  }
}

template <int64_t kColumns, bool kForward>
HWY_INLINE void Columns(const Product& p, int64_t column, int64_t k_first, int64_t k_last) {
  int64_t m = 0;
  for (; m + kBlock <= p.m; m += kBlock) Tile<kBlock, kColumns, kForward>(p, m, column, k_first, k_last);
  for (; m + 2 <= p.m; m += 2) Tile<2, kColumns, kForward>(p, m, column, k_first, k_last);
  for (; m < p.m; ++m) Tile<1, kColumns, kForward>(p, m, column, k_first, k_last);
}

template <bool kForward>
HWY_INLINE void Run(const Product& p, int64_t groups) {
  const int64_t columns = groups * kPerGroup;
  for (int64_t k = 0; k < p.k; k += kDepth) {
    const int64_t k_last = HWY_MIN(k + kDepth, p.k);
    int64_t c = 0;
    for (; c + kMaxColumns <= columns; c += kMaxColumns) Columns<kMaxColumns, kForward>(p, c, k, k_last);
    if constexpr (kMaxColumns > 2) {
      for (; c + 2 <= columns; c += 2) Columns<2, kForward>(p, c, k, k_last);
      for (; c < columns; ++c) Columns<1, kForward>(p, c, k, k_last);
    }
  }
}

void Forward(DenseShape s, const float* weight, const float* bias, const float* x, int64_t groups, bool relu,
             float* y) {
  Run<true>({weight, s.inputs, 1, x, bias, nullptr, relu, y, s.outputs, s.inputs}, groups);
}

void InputGradient(DenseShape s, const float* weight, const float* delta, const float* x, int64_t groups, float* dx) {
  Run<false>({weight, 1, s.inputs, delta, nullptr, x, false, dx, s.inputs, s.outputs}, groups);
}

struct Outer {
  const float* delta;  // [group][outputs][16]
  const float* rows;   // [image][stride]
  int64_t inputs, outputs, stride, images;
  float* dweight;
};

template <int64_t kRows, int64_t kColumns>
HWY_INLINE void OuterTile(const Outer& p, int64_t o, int64_t i) {
  const D d;
  V sum[kRows][kColumns];
  HWY_UNROLL(6)
  for (int64_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int64_t c = 0; c < kColumns; ++c) sum[r][c] = hn::Zero(d);
  }
  const float* row = p.rows + i;
  for (int64_t image = 0; image < p.images; ++image, row += p.stride) {
    const float* delta = p.delta + (image / kLanes * p.outputs + o) * kLanes + image % kLanes;
    V in[kColumns];
    HWY_UNROLL(4)
    for (int64_t c = 0; c < kColumns; ++c) in[c] = hn::Load(d, row + c * kWidth);
    HWY_UNROLL(6)
    for (int64_t r = 0; r < kRows; ++r) {
      const V scale = hn::Set(d, delta[r * kLanes]);
      HWY_UNROLL(4)
      for (int64_t c = 0; c < kColumns; ++c) sum[r][c] = hn::MulAdd(scale, in[c], sum[r][c]);
    }
  }
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const int64_t left = p.inputs - i - c * kWidth;
      float* out = p.dweight + (o + r) * p.inputs + i + c * kWidth;
      if (left >= kWidth) {
        hn::StoreU(sum[r][c], d, out);
      } else if (left > 0) {
        HWY_ALIGN float tail[16];
        hn::Store(sum[r][c], d, tail);
        for (int64_t j = 0; j < left; ++j) out[j] = tail[j];
      }
    }
  }
}

template <int64_t kColumns>
HWY_INLINE void OuterColumns(const Outer& p, int64_t first, int64_t last, int64_t i) {
  int64_t o = first;
  for (; o + kBlock <= last; o += kBlock) OuterTile<kBlock, kColumns>(p, o, i);
  for (; o + 2 <= last; o += 2) OuterTile<2, kColumns>(p, o, i);
  for (; o < last; ++o) OuterTile<1, kColumns>(p, o, i);
}

void WeightGradient(DenseShape s, const float* delta, const float* rows, int64_t images, int64_t first, int64_t last,
                    float* dweight, float* dbias) {
  const Outer p{delta, rows, s.inputs, s.outputs, RowStride(s.inputs), images, dweight};
  const int64_t padded = (s.inputs + kLanes - 1) / kLanes * kLanes;
  int64_t i = 0;
  for (; i + kMaxColumns * kWidth <= padded; i += kMaxColumns * kWidth) OuterColumns<kMaxColumns>(p, first, last, i);
  for (; i < padded; i += kWidth) OuterColumns<1>(p, first, last, i);
  for (int64_t o = first; o < last; ++o) {
    float lanes[kLanes] = {};
    for (int64_t g = 0; g < NumGroups(images); ++g) {
      for (int64_t l = 0; l < kLanes; ++l) lanes[l] += delta[(g * s.outputs + o) * kLanes + l];
    }
    float sum = 0;
    for (int64_t l = 0; l < kLanes; ++l) sum += lanes[l];
    dbias[o] = sum;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace chainfleet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chainfleet {
HWY_EXPORT(Forward);
HWY_EXPORT(InputGradient);
HWY_EXPORT(WeightGradient);

void DenseForward(DenseShape shape, const float* weight, const float* bias, const float* x, int64_t groups, bool relu,
                  float* y) {
  HWY_DYNAMIC_DISPATCH(Forward)(shape, weight, bias, x, groups, relu, y);
}

void DenseInputGradient(DenseShape shape, const float* weight, const float* delta, const float* x, int64_t groups,
                        float* dx) {
  HWY_DYNAMIC_DISPATCH(InputGradient)(shape, weight, delta, x, groups, dx);
}

void DenseWeightGradient(DenseShape shape, const float* delta, const float* rows, int64_t images, int64_t first,
                         int64_t last, float* dweight, float* dbias) {
  HWY_DYNAMIC_DISPATCH(WeightGradient)(shape, delta, rows, images, first, last, dweight, dbias);
}

}  // namespace chainfleet
#endif
