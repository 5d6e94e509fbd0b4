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
// Ten rounds on the even lanes of the counter vectors; odd lanes of the input are ignored, of the output undefined. The
// high words come by a shuffle: a shift would share the multiplier's port.
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

// The blocks `block` + lane: the products of 32-bit words fill 64-bit lanes, so even and odd lanes go separately.
HWY_INLINE Words PhiloxBlocks(const RowStep& step, RngStream stream, uint32_t block) {
  const DU du;
  const VU blocks = hn::Iota(du, block);
  const VU s = hn::Set(du, static_cast<uint32_t>(stream)), low = hn::Set(du, static_cast<uint32_t>(step.t)),
           high = hn::Set(du, static_cast<uint32_t>(step.t >> 32));
  const VU odd_blocks = hn::Shuffle2301(blocks);
  const Words even = PhiloxEven(step.key, {{blocks, s, low, high}});
  const Words odd = PhiloxEven(step.key, {{odd_blocks, s, low, high}});
  Words both;
  // Not OddEven: in this order the shuffle and the selection are one instruction.
  const auto is_odd = hn::TestBit(hn::Iota(du, 0), hn::Set(du, 1));
  HWY_UNROLL(4)
  for (int w = 0; w < 4; ++w) both.word[w] = hn::IfThenElse(is_odd, hn::Shuffle2301(odd.word[w]), even.word[w]);
  return both;
}

#else
HWY_INLINE Words PhiloxBlocks(const RowStep& step, RngStream stream, uint32_t block) {
  const PhiloxBlock b = RandomBlock(step.key, stream, step.t, block);
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
HWY_INLINE void Normals(const RowStep& step, RngStream stream, uint32_t block, VF* HWY_RESTRICT z) {
  const Words words = PhiloxBlocks(step, stream, block);
  BoxMuller(words.word[0], words.word[1], z);
  BoxMuller(words.word[2], words.word[3], z + 2);
}

struct Sums {
  VF check, distance2;  // by lane
};

// `kGroups` groups from q on, at theta[0, 64 kGroups), theta_a and gradient likewise. All noise is made first: two
// independent streams of it in flight hide the latency of one (SGLD: two groups; EMCMC: two noises).
template <bool kAnchored, int64_t kGroups>
HWY_INLINE void UpdateGroups(const RowStep& step, int64_t q, float* theta, float* theta_a, const float* gradient,
                             Sums& sums) {
  const DF df;
  const VF step_size = hn::Set(df, step.step_size), noise = hn::Set(df, step.noise),
           precision = hn::Set(df, step.prior_precision), coupling = hn::Set(df, step.coupling);
  for (size_t lane = 0; lane < kBlocks; lane += hn::Lanes(df)) {
    const uint32_t block = static_cast<uint32_t>(kBlocks * q + lane);
    VF z[4 * kGroups], z_a[4 * kGroups];
    HWY_UNROLL(2)
    for (int64_t group = 0; group < kGroups; ++group) {
      Normals(step, RngStream::kThetaNoise, block + kBlocks * group, z + 4 * group);
      if constexpr (kAnchored) Normals(step, RngStream::kThetaANoise, block + kBlocks * group, z_a + 4 * group);
    }
    HWY_UNROLL(8)
    for (size_t output = 0; output < 4 * kGroups; ++output) {
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
void UpdateRange(const RowStep step, int64_t begin, int64_t end, float* theta, float* theta_a, const float* gradient,
                 Sums& sums) {
  for (int64_t p = begin; p < end;) {
    const int64_t q = p / kGroup, in_group = p - q * kGroup, at = p - begin;
    int64_t count = std::min(kGroup - in_group, end - p);
    float* const anchor = kAnchored ? theta_a + at : nullptr;
    if (!kAnchored && in_group == 0 && end - p >= 2 * kGroup) {
      count = 2 * kGroup;
      UpdateGroups<kAnchored, 2>(step, q, theta + at, anchor, gradient + at, sums);
    } else if (count == kGroup) {
      UpdateGroups<kAnchored, 1>(step, q, theta + at, anchor, gradient + at, sums);
    } else {
      alignas(64) float theta_part[kGroup] = {}, theta_a_part[kGroup] = {}, gradient_part[kGroup] = {};
      std::copy_n(theta + at, count, theta_part + in_group);
      std::copy_n(gradient + at, count, gradient_part + in_group);
      if constexpr (kAnchored) std::copy_n(anchor, count, theta_a_part + in_group);
      UpdateGroups<kAnchored, 1>(step, q, theta_part, theta_a_part, gradient_part, sums);
      std::copy_n(theta_part + in_group, count, theta + at);
      if constexpr (kAnchored) std::copy_n(theta_a_part + in_group, count, anchor);
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
  const int64_t rows_per_chunk = std::max<int64_t>(1, kChunk / std::max<int64_t>(64, buffers.num_parameters));
  std::vector<RowOutcome> parts(buffers.rows * chunks);
  at::parallel_for(0, buffers.rows * chunks, rows_per_chunk, [&](int64_t first, int64_t last) {
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
