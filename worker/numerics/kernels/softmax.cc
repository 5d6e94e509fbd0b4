#include "worker/numerics/kernels/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/numerics/kernels/softmax.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h.
#include "hwy/contrib/math/math-inl.h"
#include "worker/numerics/kernels/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace chainfleet {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
constexpr int64_t kWidth = hn::MaxLanes(D());

void LanesSoftmax(const float* logits, int64_t classes, float* probability, float* log_normaliser) {
  const D d;
  for (int64_t v = 0; v < kLanes; v += kWidth) {
    auto largest = hn::Load(d, logits + v);
    for (int64_t k = 1; k < classes; ++k) largest = hn::Max(hn::Load(d, logits + k * kLanes + v), largest);
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < classes; ++k) {
      const auto below = hn::Sub(hn::Load(d, logits + k * kLanes + v), largest);
      // Max, Exp and Log lose a NaN; keep it: a diverged chain must not look finite.
      const auto e = hn::IfThenElse(hn::IsNaN(below), below, hn::Exp(d, below));
      hn::Store(e, d, probability + k * kLanes + v);
      sum = hn::Add(sum, e);
    }
    const auto inverse = hn::Div(hn::Set(d, 1.0f), sum);
    for (int64_t k = 0; k < classes; ++k) {
      float* p = probability + k * kLanes + v;
      hn::Store(hn::Mul(hn::Load(d, p), inverse), d, p);
    }
    const auto log = hn::IfThenElse(hn::IsNaN(sum), sum, hn::Log(d, sum));
    hn::Store(hn::Add(largest, log), d, log_normaliser + v);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace chainfleet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chainfleet {
HWY_EXPORT(LanesSoftmax);

void Softmax(const float* logits, int64_t classes, float* probability, float* log_normaliser) {
  HWY_DYNAMIC_DISPATCH(LanesSoftmax)(logits, classes, probability, log_normaliser);
}

}  // namespace chainfleet
#endif
