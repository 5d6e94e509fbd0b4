#include "core/domain/schedule_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Paths(const ScheduleKind& kind, StepScale scale = StepScale::kLearningRate) {
  std::vector<std::string> paths;
  for (const FieldViolation& violation : Validate(ScheduleSpec{scale, kind})) paths.push_back(violation.path);
  return paths;
}

TEST(ScheduleSpec, TakesEachKindWithinItsBounds) {
  const std::vector<ScheduleKind> good = {
      ConstantSchedule{0.1},         LinearSchedule{0.1, 0},         ExponentialSchedule{0.1, 0.01},
      StepSchedule{0.1, 0.1, 0.5},   SwagSchedule{0.1, 0.05, 3},     CyclicalSchedule{0.1, 0, 4},
      CyclicalSchedule{0.1, 0.1, 1}, PolynomialSchedule{0.1, 10, 1},
  };
  for (const ScheduleKind& kind : good) EXPECT_THAT(Paths(kind), IsEmpty()) << "kind " << kind.index();
}

TEST(ScheduleSpec, NamesEveryFieldOutOfBoundsBelowItsScale) {
  EXPECT_THAT(Paths(ConstantSchedule{-1}), ElementsAre("learning_rate.constant"));
  EXPECT_THAT(Paths(ConstantSchedule{-1}, StepScale::kStepSize), ElementsAre("step_size.constant"));
  EXPECT_THAT(Paths(LinearSchedule{0, -1}), ElementsAre("learning_rate.linear.initial", "learning_rate.linear.final"));
  EXPECT_THAT(Paths(ExponentialSchedule{0.1, 0}), ElementsAre("learning_rate.exponential.final"));
  EXPECT_THAT(Paths(StepSchedule{0.1, 0, 1}), ElementsAre("learning_rate.step.factor", "learning_rate.step.at"));
  EXPECT_THAT(Paths(PolynomialSchedule{0.1, 0, 0}),
              ElementsAre("learning_rate.polynomial.offset", "learning_rate.polynomial.power"));
  EXPECT_THAT(Paths(SwagSchedule{0.1, 0.1, 0}), ElementsAre("learning_rate.swag.start_epoch"));
  EXPECT_THAT(Paths(CyclicalSchedule{0.1, 0, 0}), ElementsAre("learning_rate.cyclical.cycles"));
}

TEST(ScheduleSpec, ACycleMayNotEndAboveItsStart) {
  EXPECT_THAT(Paths(CyclicalSchedule{0.1, 0.2, 4}, StepScale::kStepSize), ElementsAre("step_size.cyclical.final"));
}

TEST(ScheduleSpec, OnlyTheCyclicalOneHasCycles) {
  EXPECT_EQ((ScheduleSpec{StepScale::kLearningRate, CyclicalSchedule{0.1, 0, 4}}).cycles(), 4);
  EXPECT_EQ((ScheduleSpec{StepScale::kLearningRate, LinearSchedule{0.1, 0}}).cycles(), 1);
  EXPECT_EQ((ScheduleSpec{StepScale::kLearningRate, StepSchedule{.initial = 0.3}}).initial_value(), 0.3);
  EXPECT_EQ((ScheduleSpec{StepScale::kLearningRate, ConstantSchedule{0.2}}).initial_value(), 0.2);
}

}  // namespace
}  // namespace chainfleet
