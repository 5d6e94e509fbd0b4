// Weights of chains, and conformal sets and intervals, from rows held out.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/predict/evaluation/evaluation_world.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Names;
using ::testing::SizeIs;
using World = testing::EvaluationWorld;

// Chain 0 gives row 0's label .7 and row 1's .3, chain 1 .2 and .8, whatever the draw.
std::vector<double> ByChain(const ChainId& chain, DrawKind, int64_t, int64_t row) {
  const double of_label[2][2] = {{0.7, 0.3}, {0.2, 0.8}};
  const double p = of_label[chain.index][row];
  return {p, 1 - p};
}

// f(w) = log(.2 + .5 w) + log(.8 - .5 w) is largest at w = .6.
TEST(Evaluation, StacksChainsAndScoresTheWeightedAverages) {
  World world(ByChain, std::nullopt, {7, 1});
  world.AddDataset("held-out", {{0, 0}});
  world.AddDataset("data", {{0, 1}});
  const absl::StatusOr<Evaluation> result =
      world.Evaluate(EvaluateQuery{.draws = {.job = "job"}, .dataset = "data", .stacking_dataset = "held-out"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stacking_dataset, "held-out");
  EXPECT_EQ(result->num_stacking_rows, 2);
  ASSERT_THAT(result->weights, SizeIs(2));
  EXPECT_EQ(result->weights[1].chain.index, 1);
  EXPECT_NEAR(result->weights[0].stacking, 0.6, 1e-8);
  EXPECT_NEAR(result->weights[1].stacking, 0.4, 1e-8);
  const double first = 0.7 * 0.3, second = 0.2 * 0.8;
  EXPECT_NEAR(result->weights[0].pseudo_bma, first / (first + second), 1e-12);
  EXPECT_THAT(Names(*result),
              ElementsAre("single theta", "single theta_a", "theta", "theta_a", "stacked", "pseudo-BMA", "all"));
  const Scores& stacked = result->scores[4];
  EXPECT_NEAR(stacked.nll, -(std::log(0.6 * 0.7 + 0.4 * 0.2) + std::log(1 - 0.6 * 0.3 - 0.4 * 0.8)) / 2, 1e-8);
  EXPECT_EQ(stacked.num_draws, 16);
  EXPECT_EQ(result->draws_used, 8);
  EXPECT_NEAR(result->scores[6].nll, -(std::log((7 * 0.7 + 0.2) / 8) + std::log(1 - (7 * 0.3 + 0.8) / 8)) / 2, 1e-12);
}

// A chain without weight is left out, so its draws do not count.
TEST(Evaluation, StackedAverageLeavesOutAChainOfWeightZero) {
  World world(ByChain, std::nullopt, {7, 1});
  world.AddDataset("held-out", {{0}});
  const absl::StatusOr<Evaluation> result =
      world.Evaluate(EvaluateQuery{.draws = {.job = "job"}, .dataset = "held-out", .stacking_dataset = "held-out"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->weights[1].stacking, 0);
  EXPECT_EQ(result->scores[4].num_draws, 14);
  EXPECT_NEAR(result->scores[4].nll, -std::log(0.7), 1e-12);
  EXPECT_EQ(result->draws_used, 8);
}

TEST(Evaluation, CalibratesConformalSets) {
  World world(ByChain, std::nullopt, {1, 1});
  world.AddDataset("held-out", {{0, 1, 0, 1}});  // "all" gives the labels .45, .45, .45, .45
  world.AddDataset("data", {{0, 0}});
  const absl::StatusOr<Evaluation> result = world.Evaluate("data", "", {}, "held-out");
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(result->conformal_thresholds, SizeIs(999));
  ASSERT_THAT(result->conformal, SizeIs(5));
  const ConformalScore& half = result->conformal[0];
  EXPECT_EQ(half.level, 0.5);
  EXPECT_NEAR(half.threshold, 0.55, 1e-12);
  EXPECT_EQ(half.coverage, 1);
  EXPECT_EQ(half.mean_size, 2);                             // .45 and .55 both score at most .55
  EXPECT_TRUE(std::isinf(result->conformal[2].threshold));  // 90 % of four rows
  EXPECT_EQ(result->conformal[2].mean_size, 2);
}

TEST(Evaluation, CalibratesConformalIntervals) {
  World world(
      [](const ChainId&, DrawKind, int64_t, int64_t) {
        return std::vector<double>{1, 4};
      },
      std::nullopt, {1, 1}, Numbers());
  world.AddNumbers("held-out", {1, 3, -3, 7});  // 0, 1, 2 and 3 deviations
  world.AddNumbers("data", {5, 6});
  const absl::StatusOr<Evaluation> result = world.Evaluate("data", "", {}, "held-out");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Names(*result), ElementsAre("single theta", "single theta_a", "theta", "theta_a", "all"));
  EXPECT_EQ(result->conformal[0].threshold, 2);  // the third of four
  EXPECT_EQ(result->conformal[0].coverage, 0.5);
  EXPECT_EQ(result->conformal[0].mean_size, 8);
  EXPECT_EQ(result->conformal[1].threshold, 3);
  EXPECT_EQ(result->conformal[1].coverage, 1);
}

TEST(Evaluation, RefusesToStackTooManyRowsTimesChains) {
  World world(ByChain, std::nullopt, std::vector<int64_t>(800, 1));
  world.AddDataset("data", {std::vector<int32_t>(40)});
  const absl::StatusOr<Evaluation> result =
      world.Evaluate(EvaluateQuery{.draws = {.job = "job"}, .dataset = "data", .stacking_dataset = "data"});
  EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("at most 38"));
}

}  // namespace
}  // namespace chainfleet
