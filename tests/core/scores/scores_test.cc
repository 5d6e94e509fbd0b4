#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/rng_key.h"
#include "core/scores/calibration.h"
#include "core/scores/classification.h"
#include "core/scores/entropy.h"
#include "core/scores/ranking.h"
#include "core/scores/regression.h"
#include "core/scores/temperature.h"

namespace chainfleet {
namespace {

TEST(Scores, ClassificationByHand) {
  const std::vector<double> p = {0.7, 0.2, 0.1, 0.1, 0.3, 0.6, 0.4, 0.4, 0.2};
  const std::vector<int32_t> labels = {0, 1, 1};
  EXPECT_DOUBLE_EQ(Accuracy(p, 3, labels), 1.0 / 3);  // the tie of row 3 goes to class 0
  EXPECT_DOUBLE_EQ(NegativeLogLikelihood(p, 3, labels), -(std::log(0.7) + std::log(0.3) + std::log(0.4)) / 3);
  EXPECT_DOUBLE_EQ(BrierScore(p, 3, labels), ((0.09 + 0.04 + 0.01) + (0.01 + 0.49 + 0.36) + (0.16 + 0.36 + 0.04)) / 3);
}

TEST(Scores, ImpossibleLabelCostsMuchButIsFinite) {
  const std::vector<double> p = {1.0, 0.0};
  EXPECT_NEAR(NegativeLogLikelihood(p, 2, std::vector<int32_t>{1}), 708.4, 0.1);
}

TEST(Scores, RegressionByHand) {
  const std::vector<float> targets = {1, 2, 4};
  EXPECT_DOUBLE_EQ(RootMeanSquareError(std::vector<double>{1, 4, 3}, targets), std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(CentralCoverage(std::vector<double>{0.04, 0.06, 0.5, 0.94, 0.96}, 0.9), 0.6);
  EXPECT_NEAR(NormalDistribution(3, 1, 4), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(NormalDistribution(-30, 0, 1), 4.906713927148187e-198, 1e-205) << "no loss far out";
}

TEST(Scores, LogAddExpNeitherOverflowsNorLosesZero) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_DOUBLE_EQ(LogAddExp(std::log(2.0), std::log(3.0)), std::log(5.0));
  EXPECT_DOUBLE_EQ(LogAddExp(-1000, -1000), -1000 + std::log(2.0));
  EXPECT_DOUBLE_EQ(LogAddExp(1000, 0), 1000);
  EXPECT_EQ(LogAddExp(-infinity, -infinity), -infinity);
  EXPECT_EQ(LogAddExp(-infinity, 3), 3);
  EXPECT_TRUE(std::isnan(LogAddExp(std::nan(""), 3)));
  EXPECT_TRUE(std::isnan(LogAddExp(3, std::nan(""))));
}

TEST(Scores, NothingScoresZero) {
  EXPECT_EQ(RootMeanSquareError({}, {}), 0);
  EXPECT_EQ(CentralCoverage({}, 0.9), 0);
  EXPECT_EQ(Accuracy({}, 3, {}), 0);
  EXPECT_EQ(NegativeLogLikelihood({}, 3, {}), 0);
  EXPECT_EQ(ExpectedCalibrationError(ReliabilityBins({}, {}, 15, Binning::kEqualMass)), 0);
}

TEST(Calibration, EqualWidthByHand) {
  // Two bins: (0, .5] holds .5 (wrong); (.5, 1] holds .6 (right), .8 (wrong) and 1 (right).
  const std::vector<double> confidence = {0.5, 0.6, 0.8, 1.0};
  const auto bins = ReliabilityBins(confidence, {false, true, false, true}, 2, Binning::kEqualWidth);
  ASSERT_EQ(bins.size(), 2u);
  EXPECT_EQ(bins[0].count, 1);
  EXPECT_EQ(bins[1].count, 3);
  EXPECT_DOUBLE_EQ(bins[1].mean_confidence, 0.8);
  EXPECT_DOUBLE_EQ(bins[1].accuracy, 2.0 / 3);
  EXPECT_DOUBLE_EQ(ExpectedCalibrationError(bins), (0.5 + 3 * (0.8 - 2.0 / 3)) / 4);
}

TEST(Calibration, ConfidenceOneCountsInTheLastBinAndZeroInTheFirst) {
  const std::vector<double> confidence = {0.0, 1.0};
  const auto bins = ReliabilityBins(confidence, {false, true}, 15, Binning::kEqualWidth);
  EXPECT_EQ(bins.front().count, 1);
  EXPECT_EQ(bins.back().count, 1);
}

TEST(Calibration, EqualMassNeverSplitsEqualConfidences) {
  const std::vector<double> confidence = {0.9, 0.2, 0.9, 0.9, 0.1, 0.3};
  const auto bins = ReliabilityBins(confidence, {true, false, true, false, false, true}, 3, Binning::kEqualMass);
  ASSERT_EQ(bins.size(), 2u);
  EXPECT_EQ(bins[0].count, 2);
  EXPECT_EQ(bins[1].count, 4);  // the cut after four of six would split the three .9
}

TEST(Calibration, EqualMassGoesOnAtTheNextCutAfterALongTie) {
  std::vector<double> confidence(50, 0.1);
  for (int i = 0; i < 50; ++i) confidence.push_back(0.5 + 0.01 * i);
  const auto bins = ReliabilityBins(confidence, std::vector<bool>(100), 10, Binning::kEqualMass);
  std::vector<int64_t> counts;
  for (const ReliabilityBin& bin : bins) counts.push_back(bin.count);
  EXPECT_EQ(counts, (std::vector<int64_t>{50, 10, 10, 10, 10, 10}));
}

TEST(Calibration, AnEdgeBelongsToTheBinBelowIt) {
  for (const int num_bins : {3, 15, 20, 100}) {
    for (int b = 0; b < num_bins; ++b) {
      const std::vector<double> edge = {static_cast<double>(b + 1) / num_bins};
      EXPECT_EQ(ReliabilityBins(edge, {true}, num_bins, Binning::kEqualWidth)[static_cast<size_t>(b)].count, 1)
          << b << " of " << num_bins;
    }
  }
}

TEST(Entropy, ByHand) {
  EXPECT_DOUBLE_EQ(Entropy(std::vector<double>{0.5, 0.5, 0}), std::log(2));
  EXPECT_EQ(Entropy(std::vector<double>{1, 0}), 0);
}

TEST(Entropy, IsNaNIfAProbabilityIsNaN) { EXPECT_TRUE(std::isnan(Entropy(std::vector<double>{NAN, 0.5}))); }

TEST(MutualInformation, IsClippedWithinRoundingOnly) {
  EXPECT_EQ(MutualInformation(0.5, 0.5 + 1e-12), 0);
  EXPECT_DOUBLE_EQ(MutualInformation(0.5, 0.6), 0.5 - 0.6);
  EXPECT_DOUBLE_EQ(MutualInformation(0.7, 0.4), 0.7 - 0.4);
}

TEST(Auroc, ByHandWithTies) {
  // Pairs: (3>1) (3>2) (2>1) (2=2): 3.5 of 4.
  EXPECT_DOUBLE_EQ(Auroc(std::vector<double>{3, 2}, std::vector<double>{1, 2}), 3.5 / 4);
  EXPECT_DOUBLE_EQ(Auroc(std::vector<double>{1, 1}, std::vector<double>{1, 1, 1}), 0.5);
  EXPECT_TRUE(std::isnan(Auroc({}, std::vector<double>{1})));
}

TEST(Aupr, IsAveragePrecision) {
  // Thresholds high to low: 4 (positive) 3 (negative) 2 (positive): 1/2 * 1 + 1/2 * 2/3.
  EXPECT_DOUBLE_EQ(Aupr(std::vector<double>{4, 2}, std::vector<double>{3}), 0.5 + 0.5 * 2 / 3);
}

// Labels from the softmax of normal logits. The logits are then made 2.5 times too confident, or 0.6 times.
TEST(Temperature, RecoversHowOverconfidentLogitsAre) {
  constexpr int64_t kRows = 200'000, kClasses = 5;
  for (const double scale : {2.5, 0.6}) {
    std::vector<double> shown;
    std::vector<int32_t> labels;
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<double> logits(kClasses);
      for (int64_t k = 0; k < kClasses; ++k) {
        logits[k] =
            1.5 * NormalDouble(RngKey{7}, RngStream::kProbe, static_cast<uint64_t>(row), static_cast<uint32_t>(k));
      }
      const auto softmax = [&](double by) {
        std::vector<double> p;
        double sum = 0;
        for (const double logit : logits) sum += p.emplace_back(std::exp(by * logit));
        for (double& value : p) value /= sum;
        return p;
      };
      const PhiloxBlock block = RandomBlock(RngKey{7}, RngStream::kAccept, static_cast<uint64_t>(row), 0);
      double left = UniformDouble(block.word[0], block.word[1]);
      int32_t label = 0;
      for (const double p : softmax(1)) {
        left -= p;
        if (left <= 0) break;
        ++label;
      }
      labels.push_back(std::min<int32_t>(label, kClasses - 1));
      for (const double p : softmax(scale)) shown.push_back(p);
    }
    const double temperature = FitTemperature(shown, kClasses, labels);
    EXPECT_NEAR(temperature, scale, 0.01 * scale);
    const double best = NegativeLogLikelihood(ScaleTemperature(shown, kClasses, temperature), kClasses, labels);
    for (const double other : {0.99, 1.01}) {
      EXPECT_LT(best, NegativeLogLikelihood(ScaleTemperature(shown, kClasses, other * temperature), kClasses, labels));
    }
  }
}

TEST(Temperature, StaysWithinItsBoundsWhereTheLikelihoodHasNoMaximum) {
  const std::vector<double> p = {0.9, 0.1, 0.2, 0.8};
  EXPECT_EQ(FitTemperature(p, 2, std::vector<int32_t>{0, 1}), kLeastTemperature);
  EXPECT_EQ(FitTemperature(p, 2, std::vector<int32_t>{1, 0}), kMostTemperature);
  EXPECT_EQ(FitTemperature({}, 2, {}), 1);
}

TEST(Temperature, ScalingByOneChangesNothingAndZerosStayFinite) {
  const std::vector<double> p = {0.7, 0.2, 0.1, 1, 0, 0};
  const std::vector<double> same = ScaleTemperature(p, 3, 1), soft = ScaleTemperature(p, 3, 2);
  for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(same[i], p[i], 1e-12);
  EXPECT_NEAR(soft[0] / soft[1], std::sqrt(3.5), 1e-12);
  EXPECT_NEAR(soft[3], 1, 1e-12);
}

}  // namespace
}  // namespace chainfleet
