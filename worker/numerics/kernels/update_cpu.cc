#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/numerics/kernels/chunks.h"
#include "worker/numerics/kernels/update.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/numerics/kernels/update_cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "worker/numerics/kernels/normals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chainfleet::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Sums {
  VF check, distance2;  // by lane
};

// Updates `kGroups` groups from q on, at theta[0, 64 kGroups), and likewise theta_a and gradient. All noise is
// generated first: two independent streams in flight hide each other's latency (SGLD: two groups; EMCMC: two noises).
template <bool kAnchored, int64_t kGroups>
HWY_INLINE void UpdateGroups(const RowStep& step, int64_t q, float* theta, float* theta_a, const float* gradient,
                             Sums& sums) {
  const DF df;
  const VF step_size = hn::Set(df, step.step_size), noise = hn::Set(df, step.noise),
           precision = hn::Set(df, step.prior_precision), coupling = hn::Set(df, step.coupling),
           precision_a = hn::Set(df, step.anchor_precision);
  for (size_t lane = 0; lane < kBlocks; lane += hn::Lanes(df)) {
    const uint32_t block = static_cast<uint32_t>(kBlocks * q + lane);
    VF z[4 * kGroups], z_a[4 * kGroups];
    HWY_UNROLL(2)
    for (int64_t group = 0; group < kGroups; ++group) {
      Normals(step.key, step.t, RngStream::kThetaNoise, block + kBlocks * group, z + 4 * group);
      if constexpr (kAnchored)
        Normals(step.key, step.t, RngStream::kThetaANoise, block + kBlocks * group, z_a + 4 * group);
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
        const VF force_a = hn::NegMulAdd(precision_a, old_a, force);
        const VF fresh_a = hn::Add(old_a, hn::MulAdd(step_size, force_a, hn::Mul(noise, z_a[output])));
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

// Updates parameters [begin, end) in p of one row within one span. A group that they cut is copied through a buffer.
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

// Updates parameters [begin, end) in p of row `row`, over all spans in that range.
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
  const int64_t chunks = NumChunks(buffers.num_parameters);
  std::vector<RowOutcome> parts(buffers.rows * chunks);
  ForEachChunk(buffers.rows, buffers.num_parameters, [&](int64_t row, int64_t chunk, int64_t begin, int64_t end) {
    if (!steps[row].active) return;
    HWY_DYNAMIC_DISPATCH(UpdateChunk)(buffers, steps[row], row, begin, end, &parts[row * chunks + chunk]);
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
