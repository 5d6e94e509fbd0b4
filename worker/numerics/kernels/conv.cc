#include "worker/numerics/kernels/conv.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/numerics/kernels/conv.cc"
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
// Channels of a register block: output channels in the forward pass and the weight gradient, input channels in the
// input gradient. The order of summation of an element does not depend on them.
constexpr int64_t kForwardBlock = kWidth == 16 ? 6 : 2;
constexpr int64_t kWeightBlock = kWidth == 16 ? 4 : 2;
constexpr int64_t kInputBlock = kWidth == 16 ? 2 : 1;

// One pooled pixel of kOut channels: 4 * kOut sums.
template <int64_t kOut>
HWY_INLINE void ForwardTile(const ConvShape& s, const float* weight, const float* bias, const float* x, float* y,
                            uint8_t* largest) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> d8;
  const int64_t row = s.in_width * kLanes, per_out = s.in_channels * s.kernel * s.kernel;
  V sum[kOut][4];
  HWY_UNROLL(6)
  for (int64_t o = 0; o < kOut; ++o) {
    const V b = hn::Set(d, bias[o]);
    HWY_UNROLL(4)
    for (int64_t p = 0; p < 4; ++p) sum[o][p] = b;
  }
  const float* w = weight;
  for (int64_t i = 0; i < s.in_channels; ++i) {
    for (int64_t ky = 0; ky < s.kernel; ++ky) {
      const float* in = x + (i * s.in_height + ky) * row;
      for (int64_t kx = 0; kx < s.kernel; ++kx, ++w, in += kLanes) {
        const V x0 = hn::Load(d, in), x1 = hn::Load(d, in + kLanes);
        const V x2 = hn::Load(d, in + row), x3 = hn::Load(d, in + row + kLanes);
        HWY_UNROLL(6)
        for (int64_t o = 0; o < kOut; ++o) {
          const V wo = hn::Set(d, w[o * per_out]);
          sum[o][0] = hn::MulAdd(wo, x0, sum[o][0]);
          sum[o][1] = hn::MulAdd(wo, x1, sum[o][1]);
          sum[o][2] = hn::MulAdd(wo, x2, sum[o][2]);
          sum[o][3] = hn::MulAdd(wo, x3, sum[o][3]);
        }
      }
    }
  }
  const int64_t plane = s.pooled_height() * s.pooled_width() * kLanes;
  const V zero = hn::Zero(d);
  HWY_UNROLL(6)
  for (int64_t o = 0; o < kOut; ++o) {
    V best = sum[o][0];
    auto which = hn::Zero(di);
    HWY_UNROLL(3)
    for (int p = 1; p < 4; ++p) {
      // A NaN wins over any number, on either side: a diverged chain must not look finite.
      const auto keep = hn::Or(hn::Le(sum[o][p], best), hn::IsNaN(best));
      best = hn::IfThenElse(keep, best, sum[o][p]);
      which = hn::IfThenElse(hn::RebindMask(di, keep), which, hn::Set(di, p));
    }
    hn::Store(hn::IfThenElse(hn::Lt(best, zero), zero, best), d, y + o * plane);
    hn::Store(hn::DemoteTo(d8, which), d8, largest + o * plane);
  }
}

template <int64_t kOut>
HWY_INLINE void ForwardChannels(const ConvShape& s, const float* weight, const float* bias, const float* x, float* y,
                                uint8_t* largest) {
  for (int64_t py = 0; py < s.pooled_height(); ++py) {
    for (int64_t px = 0; px < s.pooled_width(); ++px) {
      const int64_t out = (py * s.pooled_width() + px) * kLanes;
      const float* in = x + (2 * py * s.in_width + 2 * px) * kLanes;
      for (int64_t v = 0; v < kLanes; v += kWidth) {
        ForwardTile<kOut>(s, weight, bias, in + v, y + out + v, largest + out + v);
      }
    }
  }
}

template <int64_t kSize, int64_t kMax>
using Block = std::integral_constant<int64_t, std::min(kSize, kMax)>;

// Calls body(first channel, Block) for blocks of at most `kMax` channels of nearly equal size.
template <int64_t kMax, typename Body>
HWY_INLINE void ForChannelBlocks(int64_t channels, Body body) {
  const int64_t blocks = (channels + kMax - 1) / kMax;
  for (int64_t b = 0, first = 0; b < blocks; ++b) {
    const int64_t size = channels * (b + 1) / blocks - first;
    switch (size) {
      case 1:
        body(first, Block<1, kMax>());
        break;
      case 2:
        body(first, Block<2, kMax>());
        break;
      case 3:
        body(first, Block<3, kMax>());
        break;
      case 4:
        body(first, Block<4, kMax>());
        break;
      case 5:
        body(first, Block<5, kMax>());
        break;
      default:
        body(first, Block<6, kMax>());
    }
    first += size;
  }
}

void Forward(const ConvShape& s, const float* weight, const float* bias, const float* x, float* y, uint8_t* largest) {
  const int64_t per_out = s.in_channels * s.kernel * s.kernel, plane = s.output_size() / s.out_channels * kLanes;
  ForChannelBlocks<kForwardBlock>(s.out_channels, [&](int64_t o, auto block) HWY_ATTR {
    ForwardChannels<block()>(s, weight + o * per_out, bias + o, x, y + o * plane, largest + o * plane);
  });
}

// Writes rows 2 py and 2 py + 1 of the gradient before pool and ReLU to dz[out_channels][2][2 pooled_width][16].
HWY_INLINE void Expand(const ConvShape& s, int64_t py, const float* y, const uint8_t* largest, const float* dy,
                       float* dbias, float* dz) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> d8;
  const int64_t width = s.pooled_width(), row = 2 * width * kLanes;
  for (int64_t o = 0; o < s.out_channels; ++o) {
    const int64_t first = (o * s.pooled_height() + py) * width * kLanes;
    float* out = dz + o * 2 * row;
    for (int64_t v = 0; v < kLanes; v += kWidth) {
      V sum = hn::Load(d, dbias + o * kLanes + v);
      for (int64_t px = 0; px < width; ++px) {
        const int64_t at = first + px * kLanes + v;
        const V g = hn::IfThenElseZero(hn::Gt(hn::Load(d, y + at), hn::Zero(d)), hn::Load(d, dy + at));
        const auto which = hn::PromoteTo(di, hn::Load(d8, largest + at));
        sum = hn::Add(sum, g);
        HWY_UNROLL(4)
        for (int p = 0; p < 4; ++p) {
          const auto chosen = hn::RebindMask(d, hn::Eq(which, hn::Set(di, p)));
          hn::Store(hn::IfThenElseZero(chosen, g), d, out + (p / 2) * row + (2 * px + p % 2) * kLanes + v);
        }
      }
      hn::Store(sum, d, dbias + o * kLanes + v);
    }
  }
}

// dweight[kOut channels][one input channel][one kernel row] over the two rows in dz: kOut * kKernel sums.
template <int64_t kKernel, int64_t kOut>
HWY_INLINE void WeightTile(const ConvShape& s, const float* x, const float* dz, float* dweight) {
  const D d;
  const int64_t width = 2 * s.pooled_width(), per_out = s.in_channels * kKernel * kKernel * kLanes;
  V sum[kOut][kKernel];
  HWY_UNROLL(4)
  for (int64_t o = 0; o < kOut; ++o) {
    HWY_UNROLL(5)
    for (int64_t k = 0; k < kKernel; ++k) sum[o][k] = hn::Load(d, dweight + o * per_out + k * kLanes);
  }
  for (int64_t r = 0; r < 2; ++r) {
    const float* in = x + r * s.in_width * kLanes;
    const float* out = dz + r * width * kLanes;
    for (int64_t p = 0; p < width; ++p, in += kLanes, out += kLanes) {
      V g[kOut];
      HWY_UNROLL(4)
      for (int64_t o = 0; o < kOut; ++o) g[o] = hn::Load(d, out + o * 2 * width * kLanes);
      HWY_UNROLL(5)
      for (int64_t k = 0; k < kKernel; ++k) {
        const V xk = hn::Load(d, in + k * kLanes);
        HWY_UNROLL(4)
        for (int64_t o = 0; o < kOut; ++o) sum[o][k] = hn::MulAdd(g[o], xk, sum[o][k]);
      }
    }
  }
  HWY_UNROLL(4)
  for (int64_t o = 0; o < kOut; ++o) {
    HWY_UNROLL(5)
    for (int64_t k = 0; k < kKernel; ++k) hn::Store(sum[o][k], d, dweight + o * per_out + k * kLanes);
  }
}

template <int64_t kKernel>
HWY_INLINE void WeightGradient(const ConvShape& s, int64_t py, const float* x, const float* dz, float* dweight) {
  const int64_t per_out = s.in_channels * kKernel * kKernel * kLanes;
  ForChannelBlocks<kWeightBlock>(s.out_channels, [&](int64_t o, auto block) HWY_ATTR {
    for (int64_t i = 0; i < s.in_channels; ++i) {
      for (int64_t ky = 0; ky < kKernel; ++ky) {
        for (int64_t v = 0; v < kLanes; v += kWidth) {
          WeightTile<kKernel, block()>(s, x + (i * s.in_height + 2 * py + ky) * s.in_width * kLanes + v,
                                       dz + o * 4 * s.pooled_width() * kLanes + v,
                                       dweight + o * per_out + (i * kKernel + ky) * kKernel * kLanes + v);
        }
      }
    }
  });
}

// Adds to a stretch of one row of dx, kIn channels: kPixels pixels of dz reach kPixels + kKernel - 1 of dx.
template <int64_t kKernel, int64_t kPixels, int64_t kIn>
HWY_INLINE void InputTile(const ConvShape& s, const float* weight, const float* dz, float* dx) {
  const D d;
  constexpr int64_t kReach = kPixels + kKernel - 1;
  const int64_t plane = s.in_height * s.in_width * kLanes, dz_plane = 4 * s.pooled_width() * kLanes;
  const int64_t per_in = kKernel * kKernel, per_out = s.in_channels * per_in;
  V sum[kIn][kReach];
  HWY_UNROLL(2)
  for (int64_t i = 0; i < kIn; ++i) {
    HWY_UNROLL(9)
    for (int64_t p = 0; p < kReach; ++p) sum[i][p] = hn::Load(d, dx + i * plane + p * kLanes);
  }
  for (int64_t o = 0; o < s.out_channels; ++o, weight += per_out, dz += dz_plane) {
    V w[kIn][kKernel];
    HWY_UNROLL(2)
    for (int64_t i = 0; i < kIn; ++i) {
      HWY_UNROLL(5)
      for (int64_t k = 0; k < kKernel; ++k) w[i][k] = hn::Set(d, weight[i * per_in + k]);
    }
    HWY_UNROLL(5)
    for (int64_t p = 0; p < kPixels; ++p) {
      const V g = hn::Load(d, dz + p * kLanes);
      HWY_UNROLL(5)
      for (int64_t k = 0; k < kKernel; ++k) {
        HWY_UNROLL(2)
        for (int64_t i = 0; i < kIn; ++i) sum[i][p + k] = hn::MulAdd(w[i][k], g, sum[i][p + k]);
      }
    }
  }
  HWY_UNROLL(2)
  for (int64_t i = 0; i < kIn; ++i) {
    HWY_UNROLL(9)
    for (int64_t p = 0; p < kReach; ++p) hn::Store(sum[i][p], d, dx + i * plane + p * kLanes);
  }
}

template <int64_t kKernel, int64_t kPixels>
HWY_INLINE void InputGradient(const ConvShape& s, int64_t py, const float* weight, const float* dz, float* dx) {
  const int64_t width = 2 * s.pooled_width(), plane = s.in_height * s.in_width * kLanes;
  ForChannelBlocks<kInputBlock>(s.in_channels, [&](int64_t i, auto block) HWY_ATTR {
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t ky = 0; ky < kKernel; ++ky) {
        for (int64_t p = 0; p < width; p += kPixels) {
          for (int64_t v = 0; v < kLanes; v += kWidth) {
            InputTile<kKernel, kPixels, block()>(s, weight + (i * kKernel + ky) * kKernel,
                                                 dz + (r * width + p) * kLanes + v,
                                                 dx + i * plane + ((2 * py + r + ky) * s.in_width + p) * kLanes + v);
          }
        }
      }
    }
  });
}

template <int64_t kKernel>
HWY_INLINE void BackwardRows(const ConvShape& s, int64_t py, const float* weight, const float* x, const float* dz,
                             float* dweight, float* dx) {
  WeightGradient<kKernel>(s, py, x, dz, dweight);
  if (dx == nullptr) return;
  if (2 * s.pooled_width() % 5 == 0) {
    InputGradient<kKernel, 5>(s, py, weight, dz, dx);
  } else {
    InputGradient<kKernel, 2>(s, py, weight, dz, dx);
  }
}

void Backward(const ConvShape& s, const float* weight, const float* x, const float* y, const uint8_t* largest,
              const float* dy, float* dweight, float* dbias, float* dx, float* dz) {
  if (dx != nullptr) std::fill_n(dx, s.input_size() * kLanes, 0.0f);
  for (int64_t py = 0; py < s.pooled_height(); ++py) {
    Expand(s, py, y, largest, dy, dbias, dz);
    if (s.kernel == 5) {
      BackwardRows<5>(s, py, weight, x, dz, dweight, dx);
    } else {
      BackwardRows<3>(s, py, weight, x, dz, dweight, dx);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace chainfleet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chainfleet {
HWY_EXPORT(Forward);
HWY_EXPORT(Backward);

void ConvReluPoolForward(const ConvShape& shape, const float* weight, const float* bias, const float* x, float* y,
                         uint8_t* largest) {
  HWY_DYNAMIC_DISPATCH(Forward)(shape, weight, bias, x, y, largest);
}

void ConvReluPoolBackward(const ConvShape& shape, const float* weight, const float* x, const float* y,
                          const uint8_t* largest, const float* dy, float* dweight, float* dbias, float* dx,
                          float* scratch) {
  HWY_DYNAMIC_DISPATCH(Backward)(shape, weight, x, y, largest, dy, dweight, dbias, dx, scratch);
}

void SumLanes(const float* in, int64_t slices, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int64_t s = 0; s < slices; ++s) {
      for (int64_t l = 0; l < kLanes; ++l) sum += in[(s * count + i) * kLanes + l];
    }
    out[i] = sum;
  }
}

}  // namespace chainfleet
#endif
