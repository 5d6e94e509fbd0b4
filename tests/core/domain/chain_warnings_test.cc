#include "core/domain/chain_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kExamples = 60'000;

TEST(ChainWarnings, NameTheStepSizeTheBoundAndTheCurvature) {
  ChainStats stats;
  stats.report = RunReport{.curvature = 9.5e5, .stable_below = 2.1e-6, .tested_step_size = 2.1e-6};
  EXPECT_THAT(WarningsOf(stats, JobSpec(), kExamples), IsEmpty());
  stats.report->tested_step_size = 3.3e-6;
  EXPECT_THAT(WarningsOf(stats, JobSpec(), kExamples),
              ElementsAre("step size 3.3e-06 (h = 0.198) is above the stability bound 2.1e-06 (h = 0.126) of the "
                          "curvature 9.5e+05 measured"));
  stats.report->stable_below.reset();
  EXPECT_THAT(WarningsOf(stats, JobSpec(), kExamples), IsEmpty());
}

TEST(ChainWarnings, ReportTheHeatThatRoundingAddsToSmallNoise) {
  ChainStats stats;
  stats.report = RunReport{.step_size = 1e-10, .temperature = 1e-4, .noise_ulps = 4};
  EXPECT_THAT(WarningsOf(stats, JobSpec(), kExamples), IsEmpty());
  stats.report->noise_ulps = 1;
  EXPECT_THAT(WarningsOf(stats, JobSpec(), kExamples),
              ElementsAre(AllOf(HasSubstr("1 ulp"), HasSubstr("T = 0.0001, h = 6e-06"), HasSubstr("1.1 times"))));
}

TEST(ChainWarnings, RoundingHeatGoesThroughTheMeasuredRatios) {
  EXPECT_DOUBLE_EQ(RoundingHeat(0.25), 1.69);
  EXPECT_DOUBLE_EQ(RoundingHeat(1), 1.10);
  EXPECT_DOUBLE_EQ(RoundingHeat(4), 1.004);
  EXPECT_GT(RoundingHeat(0.1), 1.69);
}

TEST(ChainWarnings, CallAMetropolisRunBiasedAboveOnePercentOfGuardedSteps) {
  JobSpec spec;
  spec.sampler.kind = PenaltyMhSpec{.num_batches = 24};
  ChainStats stats;
  stats.metropolis = MetropolisStats{.guarded = 0.01};
  EXPECT_THAT(WarningsOf(stats, spec, kExamples), IsEmpty());
  stats.metropolis->guarded = 0.02;
  EXPECT_THAT(WarningsOf(stats, spec, kExamples),
              ElementsAre(AllOf(HasSubstr("biased: 2.0 %"), HasSubstr("24 batches"), HasSubstr("larger num_batches"))));
}

}  // namespace
}  // namespace chainfleet
