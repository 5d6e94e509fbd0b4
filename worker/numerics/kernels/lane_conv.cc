#include "worker/numerics/kernels/lane_conv.h"

#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/numerics/kernels/lane_conv.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
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
// A register block: 32 vector registers hold 6 x 4 sums, 16 registers 6 x 2. The order of summation does not depend on
// it.
constexpr int64_t kChannels = 6;
constexpr int64_t kPixels = kWidth == 16 ? 4 : 2;
constexpr int64_t kDepth = 576;  // weights of a channel per pass over the pixels; those of a block stay in the L1 cache

// Input channels [first, last) of a group, for some output channels of it.
struct Stretch {
  const float* weight;  // [input channel][ky][kx][output channel]
  const float* bias;    // bias of the first stretch, may be null
  int64_t first, last;
};

// Computes `kOut` channels of `kAcross` adjacent pixels of a row. `x` is the first pixel's window in the stretch's
// first channel.
template <int64_t kOut, int64_t kAcross>
HWY_INLINE void Tile(const LaneConvShape& s, const Stretch& stretch, const float* x, float* y) {
  const D d;
  const int64_t step = s.stride * kLanes, plane = s.out_height() * s.out_width() * kLanes;
  V sum[kOut][kAcross];
  HWY_UNROLL(6)
  for (int64_t o = 0; o < kOut; ++o) {
    HWY_UNROLL(4)
    for (int64_t p = 0; p < kAcross; ++p) {
      sum[o][p] = stretch.first > 0         ? hn::Load(d, y + o * plane + p * kLanes)
                  : stretch.bias == nullptr ? hn::Zero(d)
                                            : hn::Set(d, stretch.bias[o]);
    }
  }
  const float* w = stretch.weight;
  for (int64_t i = stretch.first; i < stretch.last; ++i, x += s.in_height * s.in_width * kLanes) {
    for (int64_t ky = 0; ky < s.kernel; ++ky) {
      const float* in = x + ky * s.in_width * kLanes;
      for (int64_t kx = 0; kx < s.kernel; ++kx, w += kOut, in += kLanes) {
        V pixel[kAcross];
        HWY_UNROLL(4)
        for (int64_t p = 0; p < kAcross; ++p) pixel[p] = hn::Load(d, in + p * step);
        HWY_UNROLL(6)
        for (int64_t o = 0; o < kOut; ++o) {
          const V weight = hn::Set(d, w[o]);
          HWY_UNROLL(4)
          for (int64_t p = 0; p < kAcross; ++p) sum[o][p] = hn::MulAdd(weight, pixel[p], sum[o][p]);
        }
      }
    }
  }
  HWY_UNROLL(6)
  for (int64_t o = 0; o < kOut; ++o) {
    HWY_UNROLL(4)
    for (int64_t p = 0; p < kAcross; ++p) hn::Store(sum[o][p], d, y + o * plane + p * kLanes);
  }
}

template <int64_t kOut>
HWY_INLINE void AllPixels(const LaneConvShape& s, const Stretch& stretch, const float* x, float* y) {
  for (int64_t row = 0; row < s.out_height(); ++row) {
    const float* in = x + row * s.stride * s.in_width * kLanes;
    float* out = y + row * s.out_width() * kLanes;
    for (int64_t v = 0; v < kLanes; v += kWidth) {
      int64_t p = 0;
      for (; p + kPixels <= s.out_width(); p += kPixels) {
        Tile<kOut, kPixels>(s, stretch, in + p * s.stride * kLanes + v, out + p * kLanes + v);
      }
      for (; p < s.out_width(); ++p) {
        Tile<kOut, 1>(s, stretch, in + p * s.stride * kLanes + v, out + p * kLanes + v);
      }
    }
  }
}

// Computes `kOut` channels from `first` on. `packed` has room for the weights of a stretch.
template <int64_t kOut>
HWY_INLINE void Channels(const LaneConvShape& s, int64_t first, const float* weight, const float* bias, const float* x,
                         float* y, float* packed) {
  const int64_t in_channels = s.in_channels / s.groups, group = first / (s.out_channels / s.groups);
  const int64_t window = s.kernel * s.kernel, per_out = in_channels * window;
  x += group * in_channels * s.in_height * s.in_width * kLanes;
  y += first * s.out_height() * s.out_width() * kLanes;
  const int64_t at_once = HWY_MAX(1, kDepth / window);
  for (int64_t i = 0; i < in_channels; i += at_once) {
    const Stretch stretch{packed, bias == nullptr ? nullptr : bias + first, i, HWY_MIN(i + at_once, in_channels)};
    for (int64_t k = 0; k < (stretch.last - i) * window; ++k) {
      for (int64_t o = 0; o < kOut; ++o) packed[k * kOut + o] = weight[(first + o) * per_out + i * window + k];
    }
    AllPixels<kOut>(s, stretch, x + i * s.in_height * s.in_width * kLanes, y);
  }
}

void Forward(const LaneConvShape& s, const float* weight, const float* bias, const float* x, float* y) {
  const int64_t per_group = s.out_channels / s.groups;
  std::vector<float> room(kChannels * HWY_MAX(kDepth, s.kernel * s.kernel));
  float* const packed = room.data();
  for (int64_t start = 0; start < s.out_channels; start += per_group) {
    int64_t o = start;
    for (; o + kChannels <= start + per_group; o += kChannels) Channels<kChannels>(s, o, weight, bias, x, y, packed);
    for (; o + 4 <= start + per_group; o += 4) Channels<4>(s, o, weight, bias, x, y, packed);
    for (; o + 2 <= start + per_group; o += 2) Channels<2>(s, o, weight, bias, x, y, packed);
    for (; o < start + per_group; ++o) Channels<1>(s, o, weight, bias, x, y, packed);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace chainfleet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chainfleet {
HWY_EXPORT(Forward);

void LaneConvForward(const LaneConvShape& shape, const float* weight, const float* bias, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(Forward)(shape, weight, bias, x, y);
}

}  // namespace chainfleet
#endif
