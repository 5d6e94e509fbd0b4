#include "server/predict/sums/chain_shares.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/predict/sums/aggregator.h"
#include "server/predict/sums/member_sums.h"

namespace chainfleet {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using ::testing::SizeIs;

// One row of two classes; p: the mean over `draws` draws.
PartialPrediction Classes(int32_t chain, int64_t draws, double p, DrawKind kind = DrawKind::kTheta) {
  const auto w = static_cast<double>(draws);
  PartialPrediction partial{.chain = {"job", chain}, .kind = kind, .num_draws = draws, .num_rows = 1, .sum_w = w};
  partial.sum_w2 = w;
  partial.sums = ClassSums{2, {w * p, w * (1 - p)}, {w * p * p, w * (1 - p) * (1 - p)}, {w * 0.5}, {w, 0}, {}};
  return partial;
}

TEST(ChainShares, WeighChainsWhateverTheirNumberOfDraws) {
  const std::vector<PartialPrediction> weighed =
      Weighed({Classes(0, 9, 0.2), Classes(1, 1, 0.8), Classes(2, 5, 0.1)}, {{0, 0.25}, {1, 0.75}, {2, 0}});
  ASSERT_THAT(weighed, SizeIs(2));
  const Prediction average = Average(PointersTo(weighed), false);
  EXPECT_THAT(average.scores.classes().mean_probability,
              Pointwise(DoubleNear(1e-14), {0.25 * 0.2 + 0.75 * 0.8, 0.25 * 0.8 + 0.75 * 0.2}));
  EXPECT_EQ(average.draws_used, 10);
}

TEST(ChainShares, KeepTheMixtureOfKindsWithinAChain) {
  const std::vector<PartialPrediction> weighed = Weighed({Classes(0, 2, 0.2), Classes(0, 2, 0.6, DrawKind::kThetaA),
                                                          Classes(1, 4, 1), Classes(1, 4, 1, DrawKind::kThetaA)},
                                                         {{0, 0.5}, {1, 0.5}});
  EXPECT_NEAR(Average(PointersTo(weighed), false).scores.classes().mean_probability[0], 0.5 * 0.4 + 0.5, 1e-14);
}

TEST(ChainShares, LeaveOutChainsThatAreNotNamed) { EXPECT_THAT(Weighed({Classes(3, 2, 0.2)}, {{0, 1}}), IsEmpty()); }

TEST(ChainShares, ScaleEverySumOfNumbers) {
  PartialPrediction partial{.chain = {"job", 0}, .num_draws = 2, .num_rows = 1, .sum_w = 2, .sum_w2 = 2};
  partial.sums = NumberSums{{6}, {20}, {8}, {std::log(3)}, {1}};
  partial.sum_wg = {4};
  partial.draw_weights = {1, 1};
  partial.members = Members{.chain = {"job", 0}, .weights = {1, 1}};
  const std::vector<PartialPrediction> weighed = Weighed({partial}, {{0, 0.5}});
  ASSERT_THAT(weighed, SizeIs(1));
  const NumberSums& sums = weighed[0].numbers();
  EXPECT_EQ(weighed[0].sum_w, 0.5);
  EXPECT_EQ(weighed[0].sum_w2, 2 * 0.25 * 0.25);
  EXPECT_THAT(sums.sum_wm, ElementsAre(1.5));
  EXPECT_THAT(sums.sum_wm2, ElementsAre(5));
  EXPECT_THAT(sums.sum_wv, ElementsAre(2));
  EXPECT_NEAR(sums.log_sum_wd[0], std::log(0.75), 1e-14);
  EXPECT_THAT(sums.sum_wc, ElementsAre(0.25));
  EXPECT_THAT(weighed[0].sum_wg, ElementsAre(1));
  EXPECT_THAT(weighed[0].draw_weights, ElementsAre(0.25, 0.25));
  EXPECT_THAT(weighed[0].members->weights, ElementsAre(0.25, 0.25));
}

}  // namespace
}  // namespace chainfleet
