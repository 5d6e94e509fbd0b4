#include "worker/numerics/kernels/square_sum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/numerics/kernels/square_sum.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace chainfleet {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// `blocks` times 16 values into sums[16].
void AddSquares(const float* x, int64_t blocks, double* sums) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> df;
  constexpr int64_t kWidth = hn::MaxLanes(d), kVectors = 16 / kWidth;
  hn::Vec<decltype(d)> sum[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (int64_t b = 0; b < blocks; ++b) {
    HWY_UNROLL(16)
    for (int64_t v = 0; v < kVectors; ++v) {
      const auto value = hn::PromoteTo(d, hn::LoadU(df, x + b * 16 + v * kWidth));
      sum[v] = hn::MulAdd(value, value, sum[v]);
    }
  }
  for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, sums + v * kWidth);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace chainfleet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chainfleet {
HWY_EXPORT(AddSquares);

double SquareSum(const float* x, int64_t count) {
  double sums[16];
  HWY_DYNAMIC_DISPATCH(AddSquares)(x, count / 16, sums);
  double total = 0;
  for (int64_t i = count / 16 * 16; i < count; ++i) sums[i % 16] += static_cast<double>(x[i]) * x[i];
  for (const double sum : sums) total += sum;
  return total;
}

void LaneSquareSums(const float* x, int64_t count, double* sums) { HWY_DYNAMIC_DISPATCH(AddSquares)(x, count, sums); }

}  // namespace chainfleet
#endif
