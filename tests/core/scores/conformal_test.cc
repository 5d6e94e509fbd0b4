#include "core/scores/conformal.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(Conformal, TakesTheOrderStatistic) {
  std::vector<double> scores(99);
  std::iota(scores.rbegin(), scores.rend(), 1);  // 1 to 99: the k-th smallest is k
  const std::vector<double> thresholds = ConformalThresholds(scores);
  ASSERT_EQ(thresholds.size(), static_cast<size_t>(kConformalLevels));
  EXPECT_EQ(ConformalThreshold(thresholds, 0.9), 90);
  EXPECT_EQ(ConformalThreshold(thresholds, 0.901), 91);
  EXPECT_EQ(ConformalThreshold(thresholds, 0.9004), 91);  // the next level
  EXPECT_EQ(ConformalThreshold(thresholds, 0.99), 99);
  EXPECT_EQ(ConformalThreshold(thresholds, 0.991), std::numeric_limits<double>::infinity());
  EXPECT_EQ(ConformalThreshold(thresholds, 0.001), 1);
}

TEST(Conformal, NeedsRows) {
  EXPECT_TRUE(std::isinf(ConformalThreshold(ConformalThresholds({}), 0.5)));
  EXPECT_TRUE(std::isinf(ConformalThreshold(ConformalThresholds({0.1, std::nan("")}), 0.6)));
  EXPECT_EQ(ConformalThreshold(ConformalThresholds({0.1, std::nan("")}), 0.3), 0.1);
}

TEST(Conformal, ScoresNumbersByDeviations) {
  EXPECT_EQ(ConformalScoreOf(3, 1, 4), 1);
  EXPECT_EQ(ConformalScoreOf(-1, 1, 4), 1);
  EXPECT_EQ(ConformalScoreOf(1, 1, 0), 0);
  EXPECT_TRUE(std::isinf(ConformalScoreOf(2, 1, 0)));
  EXPECT_EQ(ConformalHalfWidth(3, 4), 6);
  EXPECT_TRUE(std::isinf(ConformalHalfWidth(std::numeric_limits<double>::infinity(), 0)));
}

// The share covered, averaged over calibration sets, is ceil((n + 1) level) / (n + 1) for scores without ties: at least
// the level, and less than 1 / (n + 1) above it.
TEST(Conformal, CoversWhatItStates) {
  std::mt19937_64 source(7);
  std::exponential_distribution<double> score;
  for (const int rows : {19, 40}) {
    for (const double level : {0.5, 0.9}) {
      constexpr int kSets = 20000;
      double covered = 0, squares = 0;
      for (int set = 0; set < kSets; ++set) {
        std::vector<double> scores(static_cast<size_t>(rows));
        for (double& value : scores) value = score(source);
        // P(a new exponential is at most t)
        const double share = 1 - std::exp(-ConformalThreshold(ConformalThresholds(scores), level));
        covered += share / kSets;
        squares += share * share / kSets;
      }
      const double expected = std::ceil((rows + 1) * level - 1e-9) / (rows + 1);
      const double error = std::sqrt((squares - covered * covered) / kSets);
      EXPECT_NEAR(covered, expected, 5 * error) << rows << " rows at " << level;
      EXPECT_GE(expected, level);
    }
  }
}

}  // namespace
}  // namespace chainfleet
