#include "server/predict/serving/chain_parts.h"

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/predict/serving/draw_selection.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// As worker/numerics/predict/prediction_sums.h says: runs of 1, 2, 4, ..., each in the same way.
double NestedSum(std::span<const double> newest_first) {
  double sum = 0;
  size_t done = 0;
  for (size_t run = 1; done < newest_first.size(); done += run, run *= 2) {
    run = std::min(run, newest_first.size() - done);
    sum += run == 1 ? newest_first[done] : NestedSum(newest_first.subspan(done, run));
  }
  return sum;
}

PartialPrediction SumOver(DrawKind kind, std::span<const double> newest_first) {
  PartialPrediction sum;
  sum.kind = kind;
  sum.num_draws = static_cast<int64_t>(newest_first.size());
  sum.sum_w = NestedSum(newest_first);
  sum.numbers().sum_wm = {NestedSum(newest_first)};
  return sum;
}

TEST(ChainParts, RunsDoubleAndTheLastTakesTheRest) {
  EXPECT_THAT(RunsOf(0), IsEmpty());
  EXPECT_THAT(RunsOf(1), ElementsAre(1));
  EXPECT_THAT(RunsOf(7), ElementsAre(1, 2, 4));
  EXPECT_THAT(RunsOf(9), ElementsAre(1, 2, 4, 2));
}

TEST(ChainParts, ALongRunIsThreeParts) {
  EXPECT_THAT(PartsOf(1), ElementsAre(1));
  EXPECT_THAT(PartsOf(2), ElementsAre(1, 1));
  EXPECT_THAT(PartsOf(4), ElementsAre(1, 2, 1));
  EXPECT_THAT(PartsOf(64), ElementsAre(31, 32, 1));
  EXPECT_THAT(PartsOf(31), ElementsAre(7, 8, 16));
  EXPECT_EQ(NumParts({1, 2, 4, 8, 5}), 1 + 2 + 3 + 3 + 3);
}

// Eleven draws, of which every second counts from the newest on: positions 10, 8, ..., 0.
TEST(ChainParts, HoldEveryDrawOfTheChainOnceTheNewestFirst) {
  ChainDraws chain{.chain = {"job-aaaaaa", 3}, .segments = {}, .num_draws = 11, .every = 2};
  for (int64_t i = 0; i < 11; ++i) {
    Segment segment;
    segment.first_index = i;
    segment.steps = {i + 1};
    segment.weights = {1};
    chain.segments.push_back(segment);
  }
  std::vector<int64_t> counts, newest;
  for (const ChainDraws& part : CutIntoParts(chain, RunsOf(NumDraws(chain)))) {
    EXPECT_EQ(part.chain, chain.chain);
    EXPECT_EQ(part.every, 2);
    counts.push_back(NumDraws(part));
    newest.push_back(part.segments[static_cast<size_t>(part.skip_draws + part.num_draws - 1)].first_index);
  }
  EXPECT_THAT(counts, ElementsAre(1, 1, 1, 1, 2));
  EXPECT_THAT(newest, ElementsAre(10, 8, 6, 4, 2));
}

TEST(ChainParts, JoinedTheyHaveTheBitsOfTheWholeAtOnceAndInWaves) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (size_t draws = 1; draws <= 200; ++draws) {
    std::vector<double> values(draws);
    for (double& value : values) value = uniform(random);
    const std::span<const double> all = values;
    const std::vector<int64_t> runs = RunsOf(static_cast<int64_t>(draws));
    std::vector<PartialPrediction> parts, waves;
    size_t first = 0;
    for (const int64_t run : runs) {
      std::vector<PartialPrediction> of_run;
      for (const int64_t part : PartsOf(run)) {
        for (const DrawKind kind : {DrawKind::kTheta, DrawKind::kThetaA}) {
          of_run.push_back(SumOver(kind, all.subspan(first, static_cast<size_t>(part))));
        }
        first += static_cast<size_t>(part);
      }
      parts.insert(parts.end(), of_run.begin(), of_run.end());
      const std::vector<PartialPrediction> wave = JoinParts(of_run, {run});
      ASSERT_EQ(wave.size(), 2u);
      waves.push_back(wave[0]);
    }
    double in_waves = 0;
    for (const PartialPrediction& wave : waves) in_waves += wave.numbers().sum_wm[0];
    const std::vector<PartialPrediction> joined = JoinParts(parts, runs);
    ASSERT_EQ(joined.size(), 2u);
    for (const PartialPrediction& sum : joined) {
      ASSERT_EQ(sum.numbers().sum_wm[0], NestedSum(all)) << draws;
      ASSERT_EQ(sum.sum_w, NestedSum(all)) << draws;
      ASSERT_EQ(sum.num_draws, static_cast<int64_t>(draws));
    }
    ASSERT_EQ(in_waves, NestedSum(all)) << draws;
  }
}

TEST(ChainParts, AKindWithMissingPartsIsLeftOut) {
  const std::vector<double> values = {1, 2, 4};
  const std::span<const double> all = values;
  const std::vector<PartialPrediction> sums =
      JoinParts({SumOver(DrawKind::kTheta, all.first(1)), SumOver(DrawKind::kTheta, all.last(1))}, {1, 2});
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].numbers().sum_wm[0], 5);
  EXPECT_EQ(sums[0].num_draws, 2);
}

}  // namespace
}  // namespace chainfleet
