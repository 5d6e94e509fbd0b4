// One job, one batch, several posteriors: compares the draws of each point of a sweep with the exact law of its
// numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/domain/sweep_points.h"
#include "tests/support/langevin_law.h"
#include "tests/support/stationary_job.h"

namespace chainfleet {
namespace {

using ::testing::IsEmpty;
using testing::Law;
using testing::Misfits;
using testing::MomentTraces;
using ::testing::Not;
using testing::RunForMoments;
using testing::StationaryLaw;

constexpr double kPrecision = 2, kAlpha = 0.2, kTemperature = 0.7;

std::vector<MomentTraces> RunSweep(const SamplerSpec& sampler, const SweepSpec& sweep, int64_t burn_in) {
  return RunForMoments({.sampler = sampler, .sweep = sweep, .burn_in = burn_in});
}

TEST(SweepLaws, EachTemperatureAndStepSizeHasTheLawOfItsOwnFiniteStep) {
  const SweepSpec sweep = {.step_size = {0.2, 0.5}, .temperature = {0.7, 0.01}};
  const std::vector<MomentTraces> samples = RunSweep({SgldSpec{}}, sweep, 50);
  ASSERT_EQ(samples.size(), 4u);
  for (int32_t point = 0; point < 4; ++point) {
    const std::vector<double> values = ValuesAt(sweep, point);
    EXPECT_THAT(
        Misfits(samples[point], StationaryLaw({.k = kPrecision, .step_size = values[0], .temperature = values[1]})),
        IsEmpty())
        << PointName(sweep, point);
  }
  EXPECT_THAT(Misfits(samples[0], StationaryLaw({.k = kPrecision, .step_size = 0.5, .temperature = 0.7})),
              Not(IsEmpty()));
}

TEST(SweepLaws, EachEtaOfEmcmcHasItsOwnCovariance) {
  const SweepSpec sweep = {.temperature = {1, 0.1}, .eta = {0.4, 1.5}};
  const std::vector<MomentTraces> samples = RunSweep({EmcmcSpec{}}, sweep, 120);
  for (int32_t point = 0; point < 4; ++point) {
    const std::vector<double> values = ValuesAt(sweep, point);
    const Law law =
        StationaryLaw({.k = kPrecision, .coupling = 1 / values[1], .step_size = kAlpha, .temperature = values[0]});
    EXPECT_THAT(Misfits(samples[point], law), IsEmpty()) << PointName(sweep, point);
  }
}

// Variance T / (k (1 - alpha k / (2 (2 - a)))).
TEST(SweepLaws, EachFrictionOfSghmcHasItsOwnVariance) {
  const SweepSpec sweep = {.friction = {0.2, 0.9}};
  const std::vector<MomentTraces> samples = RunSweep({SghmcSpec{}}, sweep, 150);
  for (int32_t point = 0; point < 2; ++point) {
    const double a = sweep.friction[point];
    const Law law{kTemperature / (kPrecision * (1 - kAlpha * kPrecision / (2 * (2 - a)))), 0, 0};
    EXPECT_THAT(Misfits(samples[point], law), IsEmpty()) << PointName(sweep, point);
  }
}

}  // namespace
}  // namespace chainfleet
