#include "worker/numerics/kernels/prior_density.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/numerics/kernels/prior_density.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
// clang-format off
#include "hwy/foreach_target.h"  // comes first
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace chainfleet {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using DD = hn::CappedTag<double, 8>;
using VD = hn::Vec<DD>;

// Each computes -log density without the factor `scale`, and the whole gradient.
struct Normal {
  explicit Normal(const NormalDensity& density) : scale(density.precision / 2), precision(density.precision) {}
  HWY_INLINE VD operator()(VD x, VD* gradient) const {
    *gradient = hn::Mul(x, hn::Set(DD(), precision));
    return hn::Mul(x, x);
  }
  double scale, precision;
};

struct Laplace {
  explicit Laplace(const LaplacePrior& density) : scale(1 / density.scale) {}
  HWY_INLINE VD operator()(VD x, VD* gradient) const {
    const VD slope = hn::CopySign(hn::Set(DD(), scale), x);
    *gradient = hn::IfThenElseZero(hn::Ne(x, hn::Zero(DD())), slope);
    return hn::Abs(x);
  }
  double scale;
};

struct StudentT {
  explicit StudentT(const StudentTPrior& density)
      : scale((density.degrees_of_freedom + 1) / 2),
        spread(density.degrees_of_freedom * density.scale * density.scale) {}
  HWY_INLINE VD operator()(VD x, VD* gradient) const {
    const DD d;
    const VD square = hn::Mul(x, x), width = hn::Set(d, spread);
    *gradient = hn::Div(hn::Mul(hn::Set(d, 2 * scale), x), hn::Add(width, square));
    return hn::Log1p(d, hn::Div(square, width));
  }
  double scale, spread;
};

template <bool kGradient, typename Density>
double AddBlocks(const Density& density, const float* x, int64_t blocks, float* gradient) {
  const DD d;
  const hn::Rebind<float, DD> df;
  constexpr int64_t kWidth = hn::MaxLanes(d), kVectors = 16 / kWidth;
  VD sum[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t v = 0; v < kVectors; ++v) {
      const int64_t at = b * 16 + v * kWidth;
      VD slope;
      sum[v] = hn::Add(sum[v], density(hn::PromoteTo(d, hn::LoadU(df, x + at)), &slope));
      if constexpr (kGradient) {
        hn::StoreU(hn::Add(hn::LoadU(df, gradient + at), hn::DemoteTo(df, slope)), df, gradient + at);
      }
    }
  }
  double sums[16], total = 0;
  for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, sums + v * kWidth);
  for (const double partial : sums) total += partial;
  return density.scale * total;
}

template <typename Density>
double AddAll(const Density& density, const float* x, int64_t count, float* gradient) {
  if (gradient == nullptr) return AddBlocks<false>(density, x, count / 16, nullptr);
  return AddBlocks<true>(density, x, count / 16, gradient);
}

double AddNormal(const NormalDensity& density, const float* x, int64_t count, float* gradient) {
  return AddAll(Normal(density), x, count, gradient);
}
double AddLaplace(const LaplacePrior& density, const float* x, int64_t count, float* gradient) {
  return AddAll(Laplace(density), x, count, gradient);
}
double AddStudentT(const StudentTPrior& density, const float* x, int64_t count, float* gradient) {
  return AddAll(StudentT(density), x, count, gradient);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace chainfleet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chainfleet {
HWY_EXPORT(AddNormal);
HWY_EXPORT(AddLaplace);
HWY_EXPORT(AddStudentT);

double AddPrior(const PriorDensity& density, const float* x, int64_t count, float* gradient) {
  if (const auto* normal = std::get_if<NormalDensity>(&density)) {
    return HWY_DYNAMIC_DISPATCH(AddNormal)(*normal, x, count, gradient);
  }
  if (const auto* laplace = std::get_if<LaplacePrior>(&density)) {
    return HWY_DYNAMIC_DISPATCH(AddLaplace)(*laplace, x, count, gradient);
  }
  return HWY_DYNAMIC_DISPATCH(AddStudentT)(std::get<StudentTPrior>(density), x, count, gradient);
}

}  // namespace chainfleet
#endif
