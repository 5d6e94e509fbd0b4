// Philox and Box-Muller in vector registers, per Highway target. Include between HWY_BEFORE_NAMESPACE and the includes
// of HWY_AFTER_NAMESPACE, like Highway's own -inl.h files. The numbers are those of core/base/rng_key.h.
#if defined(CHAINFLEET_NORMALS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CHAINFLEET_NORMALS_INL_H_
#undef CHAINFLEET_NORMALS_INL_H_
#else
#define CHAINFLEET_NORMALS_INL_H_
#endif

#include "core/base/rng_key.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace chainfleet::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 64 parameters share 16 Philox blocks: lane l of output o belongs to parameter 64 q + 16 o + l.
constexpr int64_t kGroup = 64;
constexpr size_t kBlocks = 16;
using DF = hn::CappedTag<float, kBlocks>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
using VU = hn::Vec<DU>;

struct Words {
  VU word[4];
};

#if HWY_TARGET != HWY_SCALAR
// Ten rounds on the even lanes of the counter vectors. Odd lanes of the input are ignored, odd lanes of the output are
// undefined. A shuffle moves the high words, because a shift would share the multiplier's port.
HWY_INLINE Words PhiloxEven(RngKey key, Words c) {
  const DU du;
  const VU m0 = hn::Set(du, 0xD2511F53u), m1 = hn::Set(du, 0xCD9E8D57u);
  uint32_t k0 = static_cast<uint32_t>(key.value), k1 = static_cast<uint32_t>(key.value >> 32);
  HWY_UNROLL(10)
  for (int round = 0; round < 10; ++round) {
    const auto p0 = hn::MulEven(c.word[0], m0);
    const auto p1 = hn::MulEven(c.word[2], m1);
    const VU high0 = hn::Shuffle2301(hn::BitCast(du, p0)), high1 = hn::Shuffle2301(hn::BitCast(du, p1));
    c = {{hn::Xor3(high1, c.word[1], hn::Set(du, k0)), hn::BitCast(du, p1), hn::Xor3(high0, c.word[3], hn::Set(du, k1)),
          hn::BitCast(du, p0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// The blocks `block` + lane. Products of 32-bit words fill 64-bit lanes, so even and odd lanes are computed separately.
HWY_INLINE Words PhiloxBlocks(RngKey key, uint64_t t, RngStream stream, uint32_t block) {
  const DU du;
  const VU blocks = hn::Iota(du, block);
  const VU s = hn::Set(du, static_cast<uint32_t>(stream)), low = hn::Set(du, static_cast<uint32_t>(t)),
           high = hn::Set(du, static_cast<uint32_t>(t >> 32));
  const VU odd_blocks = hn::Shuffle2301(blocks);
  const Words even = PhiloxEven(key, {{blocks, s, low, high}});
  const Words odd = PhiloxEven(key, {{odd_blocks, s, low, high}});
  Words both;
  // Not OddEven: in this order the shuffle and the selection are one instruction.
  const auto is_odd = hn::TestBit(hn::Iota(du, 0), hn::Set(du, 1));
  HWY_UNROLL(4)
  for (int w = 0; w < 4; ++w) both.word[w] = hn::IfThenElse(is_odd, hn::Shuffle2301(odd.word[w]), even.word[w]);
  return both;
}

#else
HWY_INLINE Words PhiloxBlocks(RngKey key, uint64_t t, RngStream stream, uint32_t block) {
  const PhiloxBlock b = RandomBlock(key, stream, t, block);
  const DU du;
  return {{hn::Set(du, b.word[0]), hn::Set(du, b.word[1]), hn::Set(du, b.word[2]), hn::Set(du, b.word[3])}};
}
#endif

// UniformFloat(word) * 2^24 * scale, exact for powers of two.
HWY_INLINE VF ScaledWord(VU word, float scale) {
  const DF df;
  const VF bits = hn::ConvertTo(df, hn::BitCast(DI(), hn::ShiftRight<8>(word)));
  return hn::MulAdd(bits, hn::Set(df, scale), hn::Set(df, scale));
}

// -2 ln u for u in [2^-24, 1], exactly 0 at 1: u = 2^e (1 + f) with 1 + f in [2/3, 4/3), minimax on f (4e-7 relative).
HWY_INLINE VF MinusTwoLog(VF u) {
  const DF df;
  const DI di;
  const VI two_thirds = hn::Set(di, 0x3F2AAAAB);
  const VI offset = hn::Sub(hn::BitCast(di, u), two_thirds);
  const VI exponent = hn::ShiftRight<23>(offset);
  const VI mantissa = hn::Add(hn::And(offset, hn::Set(di, 0x7FFFFF)), two_thirds);
  const VF f = hn::Sub(hn::BitCast(df, mantissa), hn::Set(df, 1.0f));
  VF q = hn::Set(df, 0x1.2cf7cep-2f);
  q = hn::MulAdd(q, f, hn::Set(df, -0x1.566c7ep-2f));
  q = hn::MulAdd(q, f, hn::Set(df, 0x1.52bec6p-2f));
  q = hn::MulAdd(q, f, hn::Set(df, -0x1.96bb88p-2f));
  q = hn::MulAdd(q, f, hn::Set(df, 0x1.0004a8p-1f));
  q = hn::MulAdd(q, f, hn::Set(df, -0x1.555a7ep-1f));
  q = hn::MulAdd(q, f, hn::Set(df, 0x1p+0f));
  const VF log_mantissa = hn::Mul(hn::MulAdd(q, f, hn::Set(df, -2.0f)), f);
  return hn::MulAdd(hn::ConvertTo(df, exponent), hn::Set(df, -0x1.62e430p+0f), log_mantissa);
}

// One Box-Muller pair: radius sqrt(-2 ln u) of `radius_word`, angle 2 pi v of `angle_word`. The half turns 2 v = n + f,
// |f| <= 1/2, are exact (n by adding 1.5 * 2^23, whose last bit is then n's parity, the sign of both); minimax in f^2
// (2e-7).
HWY_INLINE void BoxMuller(VU radius_word, VU angle_word, VF* HWY_RESTRICT z) {
  const DF df;
  const DU du;
  const VF radius = hn::Sqrt(MinusTwoLog(ScaledWord(radius_word, 0x1p-24f)));
  const VF half_turns = ScaledWord(angle_word, 0x1p-23f);
  const VF magic = hn::Set(df, 0x1.8p23f);
  const VF rounded = hn::Add(half_turns, magic);
  const VF f = hn::Sub(half_turns, hn::Sub(rounded, magic));
  const VF s = hn::Mul(f, f);
  VF sine = hn::Set(df, 0x1.3e1420p-4f);
  sine = hn::MulAdd(sine, s, hn::Set(df, -0x1.32531ep-1f));
  sine = hn::MulAdd(sine, s, hn::Set(df, 0x1.4668f0p+1f));
  sine = hn::MulAdd(sine, s, hn::Set(df, -0x1.4abbc4p+2f));
  sine = hn::Mul(hn::MulAdd(sine, s, hn::Set(df, 0x1.921fb6p+1f)), f);
  VF cosine = hn::Set(df, 0x1.c83306p-3f);
  cosine = hn::MulAdd(cosine, s, hn::Set(df, -0x1.555404p+0f));
  cosine = hn::MulAdd(cosine, s, hn::Set(df, 0x1.03c058p+2f));
  cosine = hn::MulAdd(cosine, s, hn::Set(df, -0x1.3bd3cap+2f));
  cosine = hn::MulAdd(cosine, s, hn::Set(df, 1.0f));
  const VF signed_radius = hn::Xor(radius, hn::BitCast(df, hn::ShiftLeft<31>(hn::BitCast(du, rounded))));
  z[0] = hn::Mul(signed_radius, cosine);
  z[1] = hn::Mul(signed_radius, sine);
}

// Words (0,1) and (2,3) of the blocks from `block` on: z[o] is output o.
HWY_INLINE void Normals(RngKey key, uint64_t t, RngStream stream, uint32_t block, VF* HWY_RESTRICT z) {
  const Words words = PhiloxBlocks(key, t, stream, block);
  BoxMuller(words.word[0], words.word[1], z);
  BoxMuller(words.word[2], words.word[3], z + 2);
}

}  // namespace chainfleet::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
