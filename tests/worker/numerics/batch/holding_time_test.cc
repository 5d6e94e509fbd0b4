#include "worker/numerics/batch/holding_time.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace chainfleet {
namespace {

// Rows of three parameters, all equal to one number.
class HoldingTimeTest : public ::testing::Test {
 protected:
  HoldingTimeTest() {
    for (int r = 0; r < 3; ++r) {
      theta_.AddRow();
      held_.AddRow();
    }
  }
  void MoveTo(int64_t row, float value) {
    theta_.WriteRow(row, std::vector<float>(3, value));
    held_.Moved(row);
  }
  static void Expect(const std::optional<Draw>& draw, float theta, int64_t step, double weight) {
    ASSERT_TRUE(draw.has_value());
    EXPECT_EQ(draw->theta.at(0), std::vector<float>(3, theta));
    EXPECT_EQ(draw->step, step);
    EXPECT_EQ(draw->weight, weight);
  }

  const std::shared_ptr<const Layout> layout_ =
      std::make_shared<const Layout>(std::vector<ParameterShape>{{"theta", {3}, 0, 1}});
  ThetaArena theta_{layout_, Device()};
  HoldingTime held_{layout_, Device()};
};

TEST_F(HoldingTimeTest, DrawsAStateWhenItIsLeftWithTheKeptStepsItWasHeldFor) {
  MoveTo(0, 1);
  EXPECT_FALSE(held_.Keep(0, 10, theta_).has_value()) << "nothing was held before";
  EXPECT_FALSE(held_.Keep(0, 20, theta_).has_value());
  EXPECT_FALSE(held_.Keep(0, 30, theta_).has_value());
  MoveTo(0, 2);
  Expect(held_.Keep(0, 40, theta_), 1, 30, 3);
  MoveTo(0, 3);
  Expect(held_.Keep(0, 50, theta_), 2, 40, 1);
}

TEST_F(HoldingTimeTest, CountsNoStateBetweenTwoKeptSteps) {
  held_.Keep(0, 10, theta_);
  MoveTo(0, 1);
  MoveTo(0, 2);
  Expect(held_.Keep(0, 20, theta_), 0, 10, 1);
  Expect(held_.Release(0), 2, 20, 1);
}

TEST_F(HoldingTimeTest, GivesUpTheLastStateOnce) {
  EXPECT_FALSE(held_.Release(0).has_value()) << "nothing is held yet";
  MoveTo(0, 4);
  held_.Keep(0, 10, theta_);
  held_.Keep(0, 20, theta_);
  Expect(held_.Release(0), 4, 20, 2);
  EXPECT_FALSE(held_.Release(0).has_value());
}

TEST_F(HoldingTimeTest, WeightsAddUpToTheKeptSteps) {
  double weight = 0;
  for (int64_t step = 1; step <= 50; ++step) {
    if (step % 3 == 0 || step % 7 == 0) MoveTo(0, static_cast<float>(step));
    if (const auto draw = held_.Keep(0, step, theta_)) weight += draw->weight;
  }
  EXPECT_EQ(weight + held_.Release(0)->weight, 50);
}

TEST_F(HoldingTimeTest, RowsAreApartAndTheLastTakesThePlaceOfOneThatLeaves) {
  for (int64_t row = 0; row < 3; ++row) {
    MoveTo(row, static_cast<float>(row + 1));
    for (int64_t kept = 0; kept <= row; ++kept) held_.Keep(row, 10 * (kept + 1), theta_);
  }
  held_.RemoveRow(0);
  Expect(held_.Release(0), 3, 30, 3);
  Expect(held_.Release(1), 2, 20, 2);
}

TEST_F(HoldingTimeTest, ContinuesFromTheSavedNumbers) {
  MoveTo(0, 5);
  held_.Keep(0, 10, theta_);
  held_.Keep(0, 20, theta_);
  MoveTo(0, 6);  // cut between a move and the next kept step
  const std::vector<double> numbers = held_.Save(0);
  ASSERT_EQ(static_cast<int64_t>(numbers.size()), HoldingTime::kNumbers);
  HoldingTime resumed(layout_, Device());
  resumed.AddRow();
  resumed.Restore(0, held_.arena().ReadRow(0), numbers);
  Expect(resumed.Keep(0, 30, theta_), 5, 20, 2);
  Expect(resumed.Release(0), 6, 30, 1);
}

TEST_F(HoldingTimeTest, HoldsNothingAfterNumbersOfAnotherLength) {
  held_.Restore(0, {1, 1, 1}, {2, 20});
  EXPECT_FALSE(held_.Release(0).has_value());
}

}  // namespace
}  // namespace chainfleet
