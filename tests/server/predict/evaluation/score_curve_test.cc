#include "server/predict/evaluation/score_curve.h"

#include <cmath>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/predict/fake_serving.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// P(class 0) of one row, by chain and draw.
std::vector<double> Listed(const ChainId& chain, DrawKind, int64_t draw, int64_t) {
  const double p[2][4] = {{0.9, 0.3, 0.6, 0.8}, {0.4, 0, 0, 0}};
  return {p[chain.index][draw], 1 - p[chain.index][draw]};
}

PartialPrediction Of(int32_t chain, const std::vector<std::pair<int64_t, double>>& draws) {
  const ChainId id{"job-aaaaaa", chain};
  PartialPrediction sums = testing::SumDraws(id, DrawKind::kTheta, draws, {0}, 2, Listed);
  ClassMembers members;
  sums.members.emplace();
  for (const auto& [draw, w] : draws) {
    sums.members->weights.push_back(w);
    for (const double p : Listed(id, DrawKind::kTheta, draw, 0)) {
      members.probabilities.push_back(static_cast<float>(p));
    }
  }
  sums.members->outputs = members;
  return sums;
}

TEST(ScoreCurve, StepsAreEvenInTheirLogarithmAndEndAtTheLongest) {
  EXPECT_THAT(CurveSteps(1000, 4), ElementsAre(1, 10, 100, 1000));
  EXPECT_THAT(CurveSteps(3, 64), ElementsAre(1, 2, 3));
  EXPECT_THAT(CurveSteps(7, 1), ElementsAre(7));
  EXPECT_THAT(CurveSteps(1, 8), ElementsAre(1));
}

TEST(ScoreCurve, AveragesTheFirstStepsOfEachChainByTheirWeights) {
  const std::vector<int32_t> labels = {0};
  ScoreCurve curve({4, 1}, 3, 2, labels, 15);
  curve.Add({0, 1}, {Of(1, {{0, 1}}), Of(0, {{0, 1}, {1, 2}, {2, 1}, {3, 1}})});
  const std::vector<CurvePoint> points = curve.Points();
  ASSERT_THAT(points, SizeIs(3));
  EXPECT_EQ(points[0].num_draws, 2);
  EXPECT_NEAR(points[0].nll, -std::log((0.9 + 0.4) / 2), 1e-7);
  EXPECT_EQ(points[1].num_draws, 3);
  EXPECT_NEAR(points[1].nll, -std::log((0.9 + 2 * 0.3 + 0.4) / 4), 1e-7);
  EXPECT_EQ(points[1].accuracy, 0) << "0.475";
  EXPECT_NEAR(points[1].ece, 0.525, 1e-7);
  EXPECT_EQ(points[2].num_draws, 5);
  EXPECT_NEAR(points[2].nll, -std::log((0.9 + 2 * 0.3 + 0.6 + 0.8 + 0.4) / 6), 1e-15);
}

}  // namespace
}  // namespace chainfleet
