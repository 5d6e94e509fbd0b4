#include "core/scores/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/scores/ranking.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;

TEST(Histogram, BinsAreHalfOpenAndTheLastHoldsTheTop) {
  const double top = std::log(10);
  EXPECT_THAT(Histogram(std::vector<double>{0, 0.1, 0.25, 0.5, 0.999, 1}, 1, 4), ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(Histogram(std::vector<double>{-1e-17, top, top * (1 + 1e-15)}, top, 3), ElementsAre(1, 0, 2));
  EXPECT_THAT(Histogram(std::vector<double>{}, 1, 2), ElementsAre(0, 0));
}

TEST(Histogram, DivergenceByHand) {
  // Shares (with half a row in each bin) 3.5/5 and 1.5/5 against 1.5/5 and 3.5/5: twice .4 log(7/3).
  const std::vector<int64_t> first = {3, 1}, second = {1, 3};
  EXPECT_NEAR(SymmetrisedDivergence(first, second), 0.8 * std::log(7.0 / 3), 1e-15);
  EXPECT_EQ(SymmetrisedDivergence(first, first), 0);
}

TEST(Histogram, DivergenceIsTheSameBothWaysAndFiniteForEmptyBins) {
  const std::vector<int64_t> first = {40, 10, 0, 0}, second = {0, 5, 20, 75};
  EXPECT_EQ(SymmetrisedDivergence(first, second), SymmetrisedDivergence(second, first));
  // python3: from scipy.stats import entropy; p = [40.5, 10.5, .5, .5]; q = [.5, 5.5, 20.5, 75.5]
  //          entropy(p, q) + entropy(q, p)
  EXPECT_NEAR(SymmetrisedDivergence(first, second), 7.872935731477986, 1e-12);
}

// python3: from sklearn.metrics import roc_auc_score, average_precision_score
//          y = [1, 0, 0, 1, 0, 1, 0, 0]; s = [.9, .1, .35, .35, .6, .8, .2, .35]
TEST(Ranking, AgreesWithScikitLearn) {
  const std::vector<double> positive = {0.9, 0.35, 0.8}, negative = {0.1, 0.35, 0.6, 0.2, 0.35};
  EXPECT_NEAR(Auroc(positive, negative), 0.8666666666666666, 1e-14);
  EXPECT_NEAR(Aupr(positive, negative), 0.8333333333333333, 1e-14);
}

}  // namespace
}  // namespace chainfleet
