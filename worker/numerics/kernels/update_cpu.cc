#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/numerics/kernels/update.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/numerics/kernels/update_cpu.cc"
#include "hwy/foreach_target.h"
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
// Ten rounds on the even lanes of the counter vectors; odd lanes of the input are ignored, of the output undefined.
HWY_INLINE Words PhiloxEven(RngKey key, Words c) {
  const DU du;
  const VU m0 = hn::Set(du, 0xD2511F53u), m1 = hn::Set(du, 0xCD9E8D57u);
  uint32_t k0 = static_cast<uint32_t>(key.value), k1 = static_cast<uint32_t>(key.value >> 32);
  HWY_UNROLL(10)
  for (int round = 0; round < 10; ++round) {
    const auto p0 = hn::MulEven(c.word[0], m0);
    const auto p1 = hn::MulEven(c.word[2], m1);
    const VU high0 = hn::BitCast(du, hn::ShiftRight<32>(p0)), high1 = hn::BitCast(du, hn::ShiftRight<32>(p1));
    c = {{hn::Xor3(high1, c.word[1], hn::Set(du, k0)), hn::BitCast(du, p1), hn::Xor3(high0, c.word[3], hn::Set(du, k1)),
          hn::BitCast(du, p0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// The blocks `block` + lane: the products of 32-bit words fill 64-bit lanes, so even and odd lanes go separately.
HWY_INLINE Words PhiloxBlocks(const RowStep& step, RngStream stream, uint32_t block) {
  const DU du;
  const hn::Repartition<uint64_t, DU> dw;
  const VU blocks = hn::Iota(du, block);
  const VU s = hn::Set(du, static_cast<uint32_t>(stream)), low = hn::Set(du, static_cast<uint32_t>(step.t)),
           high = hn::Set(du, static_cast<uint32_t>(step.t >> 32));
  const VU odd_blocks = hn::BitCast(du, hn::ShiftRight<32>(hn::BitCast(dw, blocks)));
  const Words even = PhiloxEven(step.key, {{blocks, s, low, high}});
  const Words odd = PhiloxEven(step.key, {{odd_blocks, s, low, high}});
  Words both;
  for (int w = 0; w < 4; ++w) {
    both.word[w] = hn::OddEven(hn::BitCast(du, hn::ShiftLeft<32>(hn::BitCast(dw, odd.word[w]))), even.word[w]);
  }
  return both;
}

#else
HWY_INLINE Words PhiloxBlocks(const RowStep& step, RngStream stream, uint32_t block) {
  const PhiloxBlock b = RandomBlock(step.key, stream, step.t, block);
  const DU du;
  return {{hn::Set(du, b.word[0]), hn::Set(du, b.word[1]), hn::Set(du, b.word[2]), hn::Set(du, b.word[3])}};
}
#endif

HWY_INLINE VF Uniform(VU word) {
  const DF df;
  const DI di;
  const VI integer = hn::Add(hn::BitCast(di, hn::ShiftRight<8>(word)), hn::Set(di, 1));
  return hn::Mul(hn::ConvertTo(df, integer), hn::Set(df, 0x1p-24f));
}

// -2 ln u for u in [2^-24, 1], exactly 0 at 1: u = 2^e (1 + f) with 1 + f in [2/3, 4/3), minimax on f (6e-8).
HWY_INLINE VF MinusTwoLog(VF u) {
  const DF df;
  const DI di;
  const VI offset = hn::Sub(hn::BitCast(di, u), hn::Set(di, 0x3F2AAAAB));
  const VI exponent = hn::ShiftRight<23>(offset);
  const VI mantissa = hn::Sub(hn::BitCast(di, u), hn::ShiftLeft<23>(exponent));
  const VF f = hn::Sub(hn::BitCast(df, mantissa), hn::Set(df, 1.0f));
  VF q = hn::Set(df, -0x1.12f598p-2f);
  q = hn::MulAdd(q, f, hn::Set(df, 0x1.3408ecp-2f));
  q = hn::MulAdd(q, f, hn::Set(df, -0x1.21249ap-2f));
  q = hn::MulAdd(q, f, hn::Set(df, 0x1.51927cp-2f));
  q = hn::MulAdd(q, f, hn::Set(df, -0x1.99ad6cp-2f));
  q = hn::MulAdd(q, f, hn::Set(df, 0x1.000adep-1f));
  q = hn::MulAdd(q, f, hn::Set(df, -0x1.55554cp-1f));
  q = hn::MulAdd(q, f, hn::Set(df, 0x1.fffff6p-1f));
  const VF log_mantissa = hn::Mul(hn::MulAdd(q, f, hn::Set(df, -2.0f)), f);
  return hn::MulAdd(hn::ConvertTo(df, exponent), hn::Set(df, -0x1.62e430p+0f), log_mantissa);
}

// cos and sin of 2 pi u: the quarter turn 4 u = n + f, |f| <= 1/2, is exact; minimax in f^2 (3e-8).
HWY_INLINE void CosSinTurn(VF u, VF* cosine, VF* sine) {
  const DF df;
  const DI di;
  const VF turn = hn::Mul(u, hn::Set(df, 4.0f));
  const VI n = hn::NearestInt(turn);
  const VF f = hn::Sub(turn, hn::ConvertTo(df, n));
  const VF s = hn::Mul(f, f);
  VF sin = hn::Set(df, -0x1.2d9b40p-8f);
  sin = hn::MulAdd(sin, s, hn::Set(df, 0x1.465ec4p-4f));
  sin = hn::MulAdd(sin, s, hn::Set(df, -0x1.4abbbap-1f));
  sin = hn::Mul(hn::MulAdd(sin, s, hn::Set(df, 0x1.921fb6p+0f)), f);
  VF cos = hn::Set(df, 0x1.db6492p-11f);
  cos = hn::MulAdd(cos, s, hn::Set(df, -0x1.55cb98p-6f));
  cos = hn::MulAdd(cos, s, hn::Set(df, 0x1.03c1eap-2f));
  cos = hn::MulAdd(cos, s, hn::Set(df, -0x1.3bd3ccp+0f));
  cos = hn::MulAdd(cos, s, hn::Set(df, 1.0f));
  // Quarter n mod 4: odd swaps cos and sin; the second bit of n + 1 is the sign of cos, that of n the sign of sin.
  const auto swap = hn::RebindMask(df, hn::TestBit(n, hn::Set(di, 1)));
  const VI cos_sign = hn::ShiftLeft<30>(hn::And(hn::Add(n, hn::Set(di, 1)), hn::Set(di, 2)));
  const VI sin_sign = hn::ShiftLeft<30>(hn::And(n, hn::Set(di, 2)));
  *cosine = hn::Xor(hn::IfThenElse(swap, sin, cos), hn::BitCast(df, cos_sign));
  *sine = hn::Xor(hn::IfThenElse(swap, cos, sin), hn::BitCast(df, sin_sign));
}

// Box-Muller on words (0,1) and (2,3) of the blocks: z[o] is output o.
HWY_INLINE void Normals(const RowStep& step, RngStream stream, uint32_t block, VF* HWY_RESTRICT z) {
  const Words words = PhiloxBlocks(step, stream, block);
  for (int pair = 0; pair < 4; pair += 2) {
    const VF radius = hn::Sqrt(MinusTwoLog(Uniform(words.word[pair])));
    VF cosine, sine;
    CosSinTurn(Uniform(words.word[pair + 1]), &cosine, &sine);
    z[pair] = hn::Mul(radius, cosine);
    z[pair + 1] = hn::Mul(radius, sine);
  }
}

struct Sums {
  VF check, distance2;  // by lane
};

// One group at theta[0, 64), theta_a[0, 64), gradient[0, 64).
template <bool kAnchored>
HWY_INLINE void UpdateGroup(const RowStep& step, uint32_t q, float* theta, float* theta_a, const float* gradient,
                            Sums& sums) {
  const DF df;
  const VF step_size = hn::Set(df, step.step_size), noise = hn::Set(df, step.noise),
           precision = hn::Set(df, step.prior_precision), coupling = hn::Set(df, step.coupling);
  for (size_t lane = 0; lane < kBlocks; lane += hn::Lanes(df)) {
    const uint32_t block = static_cast<uint32_t>(kBlocks * q + lane);
    VF z[4], z_a[4];
    Normals(step, RngStream::kThetaNoise, block, z);
    if constexpr (kAnchored) Normals(step, RngStream::kThetaANoise, block, z_a);
    for (size_t output = 0; output < 4; ++output) {
      const size_t at = kBlocks * output + lane;
      const VF old = hn::LoadU(df, theta + at);
      VF drift = hn::MulAdd(precision, old, hn::LoadU(df, gradient + at));
      if constexpr (kAnchored) {
        const VF old_a = hn::LoadU(df, theta_a + at);
        const VF gap = hn::Sub(old, old_a);
        const VF force = hn::Mul(coupling, gap);
        drift = hn::Add(drift, force);
        const VF fresh_a = hn::Add(old_a, hn::MulAdd(step_size, force, hn::Mul(noise, z_a[output])));
        hn::StoreU(fresh_a, df, theta_a + at);
        sums.check = hn::MulAdd(fresh_a, hn::Zero(df), sums.check);
        sums.distance2 = hn::MulAdd(gap, gap, sums.distance2);
      }
      const VF fresh = hn::Add(old, hn::NegMulAdd(step_size, drift, hn::Mul(noise, z[output])));
      hn::StoreU(fresh, df, theta + at);
      sums.check = hn::MulAdd(fresh, hn::Zero(df), sums.check);
    }
  }
}

// Parameters [begin, end) of one row within one span, begin and end in p; a group cut by them goes through a buffer.
template <bool kAnchored>
void UpdateRange(const RowStep& step, int64_t begin, int64_t end, float* theta, float* theta_a, const float* gradient,
                 Sums& sums) {
  for (int64_t p = begin; p < end;) {
    const int64_t q = p / kGroup, in_group = p - q * kGroup, count = std::min(kGroup - in_group, end - p);
    const int64_t at = p - begin;
    if (count == kGroup) {
      UpdateGroup<kAnchored>(step, static_cast<uint32_t>(q), theta + at, kAnchored ? theta_a + at : nullptr,
                             gradient + at, sums);
    } else {
      alignas(64) float theta_part[kGroup] = {}, theta_a_part[kGroup] = {}, gradient_part[kGroup] = {};
      std::copy_n(theta + at, count, theta_part + in_group);
      std::copy_n(gradient + at, count, gradient_part + in_group);
      if constexpr (kAnchored) std::copy_n(theta_a + at, count, theta_a_part + in_group);
      UpdateGroup<kAnchored>(step, static_cast<uint32_t>(q), theta_part, theta_a_part, gradient_part, sums);
      std::copy_n(theta_part + in_group, count, theta + at);
      if constexpr (kAnchored) std::copy_n(theta_a_part + in_group, count, theta_a + at);
    }
    p += count;
  }
}

// Parameters [begin, end) in p of row `row`, over all the spans they meet.
void UpdateChunk(const UpdateBuffers& buffers, const RowStep& step, int64_t row, int64_t begin, int64_t end,
                 RowOutcome* outcome) {
  const DF df;
  Sums sums = {hn::Zero(df), hn::Zero(df)};
  const TensorSpan* const last = buffers.spans + buffers.num_spans;
  const TensorSpan* span =
      std::upper_bound(buffers.spans, last, begin, [](int64_t p, const TensorSpan& s) { return p < s.first + s.size; });
  for (; span != last && span->first < end; ++span) {
    const int64_t from = std::max(begin, span->first), to = std::min(end, span->first + span->size);
    const int64_t at = row * buffers.row_stride + span->padded + from - span->first;
    if (buffers.theta_a != nullptr) {
      UpdateRange<true>(step, from, to, buffers.theta + at, buffers.theta_a + at, buffers.gradient + at, sums);
    } else {
      UpdateRange<false>(step, from, to, buffers.theta + at, nullptr, buffers.gradient + at, sums);
    }
  }
  outcome->theta_check = hn::GetLane(hn::SumOfLanes(df, sums.check));
  outcome->anchor_distance2 = hn::GetLane(hn::SumOfLanes(df, sums.distance2));
}

}  // namespace chainfleet::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chainfleet {

HWY_EXPORT(UpdateChunk);

void LangevinUpdateCpu(const UpdateBuffers& buffers, const RowStep* steps, RowOutcome* outcomes) {
  constexpr int64_t kChunk = 16384;  // parameters: a few microseconds, so that few rows still fill all threads
  const int64_t chunks = (buffers.num_parameters + kChunk - 1) / kChunk;
  std::vector<RowOutcome> parts(buffers.rows * chunks);
  at::parallel_for(0, buffers.rows * chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t row = task / chunks, begin = task % chunks * kChunk;
      if (!steps[row].active) continue;
      const int64_t end = std::min(begin + kChunk, buffers.num_parameters);
      HWY_DYNAMIC_DISPATCH(UpdateChunk)(buffers, steps[row], row, begin, end, &parts[task]);
    }
  });
  for (int64_t row = 0; row < buffers.rows; ++row) {
    outcomes[row] = {};
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      outcomes[row].theta_check += parts[row * chunks + chunk].theta_check;
      outcomes[row].anchor_distance2 += parts[row * chunks + chunk].anchor_distance2;
    }
  }
}

}  // namespace chainfleet
#endif
