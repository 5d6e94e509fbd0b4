#include "core/domain/step_size_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace chainfleet {
namespace {

constexpr int64_t kExamples = 50;

// 400 steps in epochs of 10.
StepSizeSchedule Make(ScheduleKind kind, StepScale scale = StepScale::kStepSize, double noise_free_fraction = 0) {
  JobSpec spec;
  spec.model.kind = BuiltinModel{"softmax_regression", {}};
  spec.batch_size = 5;
  spec.num_epochs = 40;
  spec.temperature = 2;
  spec.schedule = {scale, kind};
  spec.sampler.kind = SgldSpec{.noise_free_fraction = noise_free_fraction};
  return StepSizeSchedule(spec, PlanSteps(spec, kExamples), kExamples);
}

TEST(StepSizeSchedule, ConstantIsConstantOnBothScales) {
  EXPECT_EQ(Make(ConstantSchedule{0.5}).StepSize(399), 0.5);
  EXPECT_EQ(Make(ConstantSchedule{0.5}, StepScale::kLearningRate).StepSize(399), 0.01);
}

TEST(StepSizeSchedule, CyclicalFollowsTheCosineAndRestarts) {
  const StepSizeSchedule schedule = Make(CyclicalSchedule{0.2, 0.04, 4});
  EXPECT_DOUBLE_EQ(schedule.StepSize(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.StepSize(50), 0.12);
  EXPECT_DOUBLE_EQ(schedule.StepSize(25), 0.04 + 0.08 * (std::sqrt(0.5) + 1));
  EXPECT_DOUBLE_EQ(schedule.StepSize(100), 0.2);
  EXPECT_DOUBLE_EQ(schedule.StepSize(399), schedule.StepSize(99));
}

TEST(StepSizeSchedule, LinearAndExponentialReachTheirMeansHalfWay) {
  EXPECT_DOUBLE_EQ(Make(LinearSchedule{0.3, 0.1}).StepSize(0), 0.3);
  EXPECT_DOUBLE_EQ(Make(LinearSchedule{0.3, 0.1}).StepSize(200), 0.2);
  EXPECT_DOUBLE_EQ(Make(ExponentialSchedule{0.4, 0.1}).StepSize(0), 0.4);
  EXPECT_DOUBLE_EQ(Make(ExponentialSchedule{0.4, 0.1}).StepSize(200), 0.2);
}

TEST(StepSizeSchedule, StepHoldsAndThenDrops) {
  const StepSizeSchedule schedule = Make(StepSchedule{.initial = 0.5, .factor = 0.1, .at = 0.25});
  EXPECT_EQ(schedule.StepSize(99), 0.5);
  EXPECT_DOUBLE_EQ(schedule.StepSize(100), 0.05);
}

TEST(StepSizeSchedule, SwagReachesItsFinalValueBeforeItsStartEpoch) {
  const StepSizeSchedule schedule = Make(SwagSchedule{0.5, 0.1, 20});
  EXPECT_EQ(schedule.StepSize(10 * 10 + 9), 0.5);     // epoch 10 of 20: s = 0.5
  EXPECT_DOUBLE_EQ(schedule.StepSize(14 * 10), 0.3);  // s = 0.7
  EXPECT_EQ(schedule.StepSize(18 * 10), 0.1);         // s = 0.9
  EXPECT_EQ(schedule.StepSize(39 * 10), 0.1);
}

TEST(StepSizeSchedule, PolynomialIsTheOneOfWellingAndTeh) {
  const double a = 0.04, b = 25, gamma = 0.6;
  const StepSizeSchedule schedule = Make(PolynomialSchedule{a * std::pow(b, -gamma), b, gamma});
  for (const int64_t t : {0, 1, 50, 399}) {
    EXPECT_DOUBLE_EQ(schedule.StepSize(t), a * std::pow(b + static_cast<double>(t), -gamma)) << t;
  }
}

TEST(StepSizeSchedule, StartOfEachCycleIsWithoutNoiseWhenTheSamplerSaysSo) {
  const StepSizeSchedule schedule = Make(CyclicalSchedule{0.2, 0.04, 4}, StepScale::kStepSize, 0.8);
  EXPECT_EQ(schedule.Temperature(0), 0);
  EXPECT_EQ(schedule.Temperature(79), 0);
  EXPECT_EQ(schedule.Temperature(80), 2);
  EXPECT_EQ(schedule.Temperature(99), 2);
  EXPECT_EQ(schedule.Temperature(100), 0);
}

}  // namespace
}  // namespace chainfleet
