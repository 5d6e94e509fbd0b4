// One job, one batch, several posteriors: the draws of every point of a sweep against the exact law of its own numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/domain/sweep_points.h"
#include "tests/support/langevin_law.h"
#include "worker/numerics/chain_batch.h"

namespace chainfleet {
namespace {

using ::testing::IsEmpty;
using testing::Law;
using testing::Misfits;
using ::testing::Not;
using testing::Samples;
using testing::StationaryLaw;

constexpr double kPrecision = 2, kAlpha = 0.2, kTemperature = 0.7;

// By point: the last draws of its chains on a Gaussian of independent coordinates.
std::vector<Samples> RunSweep(const SamplerSpec& sampler, const SweepSpec& sweep, int steps) {
  constexpr int64_t kDimension = 240'000;
  auto plan = std::make_shared<JobPlan>();
  JobSpec& spec = plan->spec;
  plan->job = "law-aaaaaa";
  spec.name = "law";
  spec.model.kind = GaussianPotential{kDimension, kPrecision};
  spec.sampler = sampler;
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{kAlpha}};
  spec.temperature = kTemperature;
  spec.num_steps = steps;
  spec.chains = 2;
  spec.sweep = sweep;
  spec.seed = 20240607;
  const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  for (int32_t chain = 0; chain < NumChains(spec); ++chain) {
    EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  }
  for (int step = 0; step < steps; ++step) EXPECT_TRUE((*batch)->Step().ok());
  std::vector<Samples> of_point(NumPoints(sweep));
  for (int32_t chain = 0; chain < NumChains(spec); ++chain) {
    const DrawTensors draw = (*batch)->TakeDraw(chain);
    Samples& samples = of_point[PointOf(spec, chain)];
    samples.theta.insert(samples.theta.end(), draw.kinds[0].begin(), draw.kinds[0].end());
    if (draw.kinds.size() == 1) continue;
    samples.theta_a.insert(samples.theta_a.end(), draw.kinds[1].begin(), draw.kinds[1].end());
  }
  return of_point;
}

TEST(SweepLaws, EachTemperatureAndStepSizeHasTheLawOfItsOwnFiniteStep) {
  const SweepSpec sweep = {.step_size = {0.2, 0.5}, .temperature = {0.7, 0.01}};
  const std::vector<Samples> samples = RunSweep({SgldSpec{}}, sweep, 50);
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
  const std::vector<Samples> samples = RunSweep({EmcmcSpec{}}, sweep, 120);
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
  const std::vector<Samples> samples = RunSweep({SghmcSpec{}}, sweep, 150);
  for (int32_t point = 0; point < 2; ++point) {
    const double a = sweep.friction[point];
    const Law law{kTemperature / (kPrecision * (1 - kAlpha * kPrecision / (2 * (2 - a)))), 0, 0};
    EXPECT_THAT(Misfits(samples[point], law), IsEmpty()) << PointName(sweep, point);
  }
}

}  // namespace
}  // namespace chainfleet
