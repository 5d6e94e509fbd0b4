#include <algorithm>
#include <vector>

#include "worker/numerics/kernels/chunks.h"
#include "worker/numerics/kernels/pass.h"
#include "worker/numerics/kernels/pass_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/numerics/kernels/pass_cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "worker/numerics/kernels/normals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chainfleet::HWY_NAMESPACE {

struct LaneSums {
  double sum[kBlocks] = {};
  float check[kBlocks] = {};
};

// Applies the op to the 64 parameters of group q, at x[arena][0, 64). Those in [first, first + count) belong to the
// span; the others hold harmless values. All loops have fixed bounds over local arrays, so that the compiler vectorises
// them in the same way for every group.
template <typename Op>
void ApplyToGroup(const PassRow& row, RngStream stream, int64_t q, int64_t first, int64_t count, float (*x)[kGroup],
                  LaneSums* sums) {
  alignas(64) float z[kGroup] = {}, term[kGroup];
  if constexpr (Op::kNoises > 0) {
    const DF df;
    for (size_t lane = 0; lane < kBlocks; lane += hn::Lanes(df)) {
      VF normals[4];
      Normals(row.key, row.t, stream, static_cast<uint32_t>(kBlocks * q + lane), normals);
      for (size_t output = 0; output < 4; ++output) hn::StoreU(normals[output], df, z + kBlocks * output + lane);
    }
  }
  for (int64_t i = 0; i < kGroup; ++i) {
    float value[Op::kArenas];
    for (int a = 0; a < Op::kArenas; ++a) value[a] = x[a][i];
    term[i] = Op::Apply(row.s, value, z[i]);
    for (int a = 0; a < Op::kArenas; ++a) x[a][i] = value[a];
  }
  if (count < kGroup) {
    for (int64_t i = 0; i < kGroup; ++i) {
      if (i >= first && i < first + count) continue;
      term[i] = 0;
      for (int a = 0; a < Op::kArenas; ++a) x[a][i] = 0;
    }
  }
  for (size_t output = 0; output < 4; ++output) {
    for (size_t lane = 0; lane < kBlocks; ++lane) sums->sum[lane] += term[kBlocks * output + lane];
    for (int a = 0; a < Op::kArenas; ++a) {
      if ((Op::kWritten >> a & 1) == 0) continue;
      for (size_t lane = 0; lane < kBlocks; ++lane) sums->check[lane] += x[a][kBlocks * output + lane] * 0.0f;
    }
  }
}

// Applies the op to parameters [begin, end) in p of row `r`, over all spans in that range.
template <typename Op>
void ApplyToChunk(const PassBuffers& buffers, const PassRow& row, int64_t r, int64_t begin, int64_t end,
                  PassOutcome* outcome) {
  LaneSums sums;
  const TensorSpan* const last = buffers.spans + buffers.num_spans;
  const TensorSpan* span =
      std::upper_bound(buffers.spans, last, begin, [](int64_t p, const TensorSpan& s) { return p < s.first + s.size; });
  for (; span != last && span->first < end; ++span) {
    const int64_t from = std::max(begin, span->first), to = std::min(end, span->first + span->size);
    const int64_t base = r * buffers.row_stride + span->padded - span->first;
    for (int64_t p = from; p < to;) {
      const int64_t q = p / kGroup, in_group = p - q * kGroup, count = std::min(kGroup - in_group, to - p);
      alignas(64) float x[Op::kArenas][kGroup];
      if (count < kGroup) std::fill_n(x[0], Op::kArenas * kGroup, 1.0f);
      for (int a = 0; a < Op::kArenas; ++a) std::copy_n(buffers.arena[a] + base + p, count, x[a] + in_group);
      ApplyToGroup<Op>(row, buffers.stream, q, in_group, count, x, &sums);
      for (int a = 0; a < Op::kArenas; ++a) {
        if (Op::kWritten >> a & 1) std::copy_n(x[a] + in_group, count, buffers.arena[a] + base + p);
      }
      p += count;
    }
  }
  for (size_t lane = 0; lane < kBlocks; ++lane) {
    outcome->sum += sums.sum[lane];
    outcome->check += sums.check[lane];
  }
}

void RunChunk(Pass pass, const PassBuffers& buffers, const PassRow& row, int64_t r, int64_t begin, int64_t end,
              PassOutcome* outcome) {
  switch (pass) {
#define CHAINFLEET_CASE(Name) \
  case Pass::k##Name:         \
    return ApplyToChunk<pass::Name>(buffers, row, r, begin, end, outcome);
    CHAINFLEET_PASSES(CHAINFLEET_CASE)
#undef CHAINFLEET_CASE
  }
}

}  // namespace chainfleet::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chainfleet {

HWY_EXPORT(RunChunk);

void RunPassCpu(Pass pass, const PassBuffers& buffers, const PassRow* rows, PassOutcome* outcomes) {
  const int64_t chunks = NumChunks(buffers.num_parameters);
  std::vector<PassOutcome> parts(buffers.rows * chunks);
  ForEachChunk(buffers.rows, buffers.num_parameters, [&](int64_t row, int64_t chunk, int64_t begin, int64_t end) {
    if (!rows[row].active) return;
    HWY_DYNAMIC_DISPATCH(RunChunk)(pass, buffers, rows[row], row, begin, end, &parts[row * chunks + chunk]);
  });
  for (int64_t row = 0; row < buffers.rows; ++row) {
    outcomes[row] = {};
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      outcomes[row].sum += parts[row * chunks + chunk].sum;
      outcomes[row].check += parts[row * chunks + chunk].check;
    }
  }
}

}  // namespace chainfleet
#endif
