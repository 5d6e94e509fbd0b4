#include "worker/numerics/kernels/gather.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/numerics/kernels/gather.cc"
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
constexpr int64_t kWidth = hn::MaxLanes(D());

template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadFloats(Tag d, const uint8_t* p) {
  return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<Tag>(), hn::LoadU(hn::Rebind<uint8_t, Tag>(), p)));
}
template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadFloats(Tag d, const float* p) {
  return hn::LoadU(d, p);
}

// Channels of one value: columns of a table.
template <class Tag, typename T>
HWY_INLINE void NormaliseColumns(Tag d, const InputScale& input, const T* row, float* out, int64_t* next) {
  constexpr int64_t kStep = hn::MaxLanes(Tag());
  for (; *next + kStep <= input.channels; *next += kStep) {
    const auto scale = hn::LoadU(d, input.scale + *next), shift = hn::LoadU(d, input.shift + *next);
    hn::StoreU(hn::MulAdd(LoadFloats(d, row + *next), scale, shift), d, out + *next);
  }
}

template <typename T>
void Normalise(const InputScale& input, const T* row, float* out) {
  const D d;
  if (input.channel_size == 1) {
    int64_t next = 0;
    NormaliseColumns(d, input, row, out, &next);
    NormaliseColumns(hn::CappedTag<float, 1>(), input, row, out, &next);
    return;
  }
  for (int64_t c = 0; c < input.channels; ++c) {
    const auto scale = hn::Set(d, input.scale[c]), shift = hn::Set(d, input.shift[c]);
    int64_t i = 0;
    for (; i + kWidth <= input.channel_size; i += kWidth) {
      hn::StoreU(hn::MulAdd(LoadFloats(d, row + i), scale, shift), d, out + i);
    }
    if (i < input.channel_size) {
      T in[kWidth] = {};
      float tail[kWidth];
      const size_t left = input.channel_size - i;
      std::memcpy(in, row + i, left * sizeof(T));
      hn::StoreU(hn::MulAdd(LoadFloats(d, in), scale, shift), d, tail);
      std::memcpy(out + i, tail, left * sizeof(float));
    }
    row += input.channel_size;
    out += input.channel_size;
  }
}
void NormaliseBytes(const InputScale& input, const uint8_t* row, float* out) { Normalise(input, row, out); }
void NormaliseFloats(const InputScale& input, const float* row, float* out) { Normalise(input, row, out); }

// Transposes 4 x 4 floats.
HWY_INLINE void Transpose4(const float* in, int64_t in_stride, float* out, int64_t out_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t r = 0; r < 4; ++r) {
    for (int64_t c = 0; c < 4; ++c) out[c * out_stride + r] = in[r * in_stride + c];
  }
#else
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, in), r1 = hn::LoadU(d, in + in_stride);
  const auto r2 = hn::LoadU(d, in + 2 * in_stride), r3 = hn::LoadU(d, in + 3 * in_stride);
  const auto lo01 = hn::InterleaveLower(d, r0, r1), lo23 = hn::InterleaveLower(d, r2, r3);
  const auto hi01 = hn::InterleaveUpper(d, r0, r1), hi23 = hn::InterleaveUpper(d, r2, r3);
  hn::StoreU(hn::ConcatLowerLower(d, lo23, lo01), d, out);
  hn::StoreU(hn::ConcatUpperUpper(d, lo23, lo01), d, out + out_stride);
  hn::StoreU(hn::ConcatLowerLower(d, hi23, hi01), d, out + 2 * out_stride);
  hn::StoreU(hn::ConcatUpperUpper(d, hi23, hi01), d, out + 3 * out_stride);
#endif
}

void ToLanes(const float* rows, int64_t stride, int64_t features, float* out) {
  int64_t f = 0;
  for (; f + 4 <= features; f += 4) {
    for (int64_t l = 0; l < kLanes; l += 4) Transpose4(rows + l * stride + f, stride, out + f * kLanes + l, kLanes);
  }
  for (; f < features; ++f) {
    for (int64_t l = 0; l < kLanes; ++l) out[f * kLanes + l] = rows[l * stride + f];
  }
}

void ToRows(const float* lanes, int64_t features, float* rows, int64_t stride) {
  int64_t f = 0;
  for (; f + 4 <= features; f += 4) {
    for (int64_t l = 0; l < kLanes; l += 4) Transpose4(lanes + f * kLanes + l, kLanes, rows + l * stride + f, stride);
  }
  for (; f < features; ++f) {
    for (int64_t l = 0; l < kLanes; ++l) rows[l * stride + f] = lanes[f * kLanes + l];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace chainfleet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chainfleet {
HWY_EXPORT(NormaliseBytes);
HWY_EXPORT(NormaliseFloats);
HWY_EXPORT(ToLanes);
HWY_EXPORT(ToRows);

void NormaliseRow(const InputScale& input, const uint8_t* row, float* out) {
  HWY_DYNAMIC_DISPATCH(NormaliseBytes)(input, row, out);
}

void NormaliseRow(const InputScale& input, const float* row, float* out) {
  HWY_DYNAMIC_DISPATCH(NormaliseFloats)(input, row, out);
}

void RowsToLanes(const float* rows, int64_t stride, int64_t images, int64_t features, float* out) {
  if (images == kLanes) {
    HWY_DYNAMIC_DISPATCH(ToLanes)(rows, stride, features, out);
    return;
  }
  for (int64_t f = 0; f < features; ++f) {
    for (int64_t l = 0; l < kLanes; ++l) out[f * kLanes + l] = l < images ? rows[l * stride + f] : 0;
  }
}

void LanesToRows(const float* lanes, int64_t features, float* rows, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(ToRows)(lanes, features, rows, stride);
}

}  // namespace chainfleet
#endif
