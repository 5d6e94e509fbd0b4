#include "worker/runtime/step_timer.h"

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

class StepTimerTest : public ::testing::Test {
 protected:
  // Makes `count` steps of `each`, one after the other.
  void Run(int count, absl::Duration each) {
    for (int i = 0; i < count; ++i) {
      timer_.Add(now_, now_ + each);
      now_ += each;
    }
  }

  absl::Duration now_ = absl::Seconds(1000);
  StepTimer timer_;
};

TEST_F(StepTimerTest, ReportsNothingBeforeTheFirstMeasurement) {
  EXPECT_EQ(timer_.Median(), absl::ZeroDuration());
  EXPECT_EQ(timer_.StepsPerSecond(), 0);
  Run(1, absl::Seconds(2));
  EXPECT_EQ(timer_.Median(), absl::Seconds(2));
  EXPECT_EQ(timer_.StepsPerSecond(), 0);
  Run(1, absl::Seconds(2));
  EXPECT_DOUBLE_EQ(timer_.StepsPerSecond(), 0.5);
}

TEST_F(StepTimerTest, UsesTheLast31StepsIfTheyTakeLong) {
  Run(100, absl::Seconds(10));
  Run(16, absl::Seconds(1));
  EXPECT_EQ(timer_.Median(), absl::Seconds(1));
  EXPECT_DOUBLE_EQ(timer_.StepsPerSecond(), 30.0 / (14 * 10 + 16 * 1));
  Run(15, absl::Seconds(1));
  EXPECT_DOUBLE_EQ(timer_.StepsPerSecond(), 1);
}

TEST_F(StepTimerTest, TheRateOfShortStepsCountsTheTurnsOfOthers) {
  for (int turn = 0; turn < 100; ++turn) {  // 50 ms each
    Run(5000, absl::Microseconds(10));
    EXPECT_EQ(timer_.Median(), absl::Microseconds(10));
    if (turn >= 60) {
      EXPECT_NEAR(timer_.StepsPerSecond(), 50'000, 1500);
    }
    now_ += absl::Milliseconds(50);
  }
}

TEST_F(StepTimerTest, TheRateFollowsWithinThreeSeconds) {
  Run(500'000, absl::Microseconds(10));
  EXPECT_NEAR(timer_.StepsPerSecond(), 100'000, 1);
  Run(31'000, absl::Microseconds(100));
  EXPECT_NEAR(timer_.StepsPerSecond(), 10'000, 1);
}

}  // namespace
}  // namespace chainfleet
