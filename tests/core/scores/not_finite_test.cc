// Tests that each score returns, and in time, for rows that are NaN or infinite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/scores/calibration.h"
#include "core/scores/classification.h"
#include "core/scores/entropy.h"
#include "core/scores/histogram.h"
#include "core/scores/ranking.h"
#include "core/scores/regression.h"
#include "core/scores/temperature.h"

namespace chainfleet {
namespace {

using Doubles = std::vector<double>;
using testing::ElementsAre;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(NotFinite, ARankWithNaNIsNone) {
  for (const Doubles& with : {Doubles{kNaN, 1}, Doubles{1, kNaN}, Doubles{kNaN}}) {
    EXPECT_TRUE(std::isnan(Auroc(with, Doubles{0, 2})));
    EXPECT_TRUE(std::isnan(Auroc(Doubles{0, 2}, with)));
    EXPECT_TRUE(std::isnan(Aupr(with, Doubles{0, 2})));
    EXPECT_TRUE(std::isnan(Aupr(Doubles{0, 2}, with)));
  }
}

TEST(NotFinite, InfinitiesHaveTheirRank) {
  EXPECT_EQ(Auroc(Doubles{kInfinity, kInfinity}, Doubles{-kInfinity, kInfinity}), 0.75);
  EXPECT_EQ(Aupr(Doubles{kInfinity}, Doubles{-kInfinity}), 1);
}

TEST(NotFinite, AHistogramLeavesNaNOutAndPutsInfinityAtItsEnds) {
  EXPECT_THAT(Histogram(Doubles{kNaN, 0.1, kInfinity, -kInfinity}, 1, 4), ElementsAre(2, 0, 0, 1));
}

TEST(NotFinite, BinsHoldTheRowsThatHaveAConfidence) {
  const Doubles confidence = {0.2, kNaN, kInfinity, 0.9, -kInfinity, kNaN};
  const std::vector<bool> correct = {true, true, false, true, false, false};
  const auto wide = ReliabilityBins(confidence, correct, 2, Binning::kEqualWidth);
  ASSERT_EQ(wide.size(), 2u);
  EXPECT_EQ(wide[0].count, 2);
  EXPECT_EQ(wide[1].count, 2);
  int64_t count = 0;
  for (const ReliabilityBin& bin : ReliabilityBins(confidence, correct, 3, Binning::kEqualMass)) count += bin.count;
  EXPECT_EQ(count, 4);
  const Doubles one = {kNaN, 0.75};
  for (const Binning binning : {Binning::kEqualWidth, Binning::kEqualMass}) {
    EXPECT_EQ(ExpectedCalibrationError(ReliabilityBins(one, {false, true}, 4, binning)), 0.25);
    EXPECT_EQ(ExpectedCalibrationError(ReliabilityBins(Doubles{kNaN}, {true}, 4, binning)), 0);
  }
}

TEST(NotFinite, MeansOverRowsAreNaN) {
  const std::vector<int32_t> labels = {0, 1};
  for (const Doubles& p : {Doubles{0.9, 0.1, kNaN, kNaN}, Doubles{0.9, 0.1, 0.5, kNaN}}) {
    EXPECT_TRUE(std::isnan(Accuracy(p, 2, labels)));
    EXPECT_TRUE(std::isnan(NegativeLogLikelihood(p, 2, labels)));
    EXPECT_TRUE(std::isnan(BrierScore(p, 2, labels)));
  }
  EXPECT_TRUE(std::isnan(RootMeanSquareError(Doubles{1, kNaN}, std::vector<float>{1, 2})));
  EXPECT_TRUE(std::isnan(CentralCoverage(Doubles{0.5, kNaN}, 0.9)));
  EXPECT_TRUE(std::isnan(MutualInformation(kNaN, 0.5)));
}

TEST(NotFinite, TheLargestOfARowWithNaNIsNaN) {
  EXPECT_EQ(ArgMax(Doubles{0.1, kNaN, 0.9, kNaN}), 1);
  EXPECT_EQ(ArgMax(Doubles{0.1, kInfinity, 0.9}), 1);
}

TEST(NotFinite, NoTemperatureFitsIt) {
  const std::vector<int32_t> labels = {0, 0, 1};
  EXPECT_TRUE(std::isnan(FitTemperature(Doubles{0.9, 0.1, kNaN, kNaN, 0.6, 0.4}, 2, labels)));
  EXPECT_TRUE(std::isnan(FitTemperature(Doubles{0.9, 0.1, kInfinity, 0, 0.6, 0.4}, 2, labels)));
  const Doubles scaled = ScaleTemperature(Doubles{0.8, 0.2, 0.5, kNaN}, 2, 2);
  EXPECT_NEAR(scaled[0], 2.0 / 3, 1e-12);
  EXPECT_TRUE(std::isnan(scaled[2]) && std::isnan(scaled[3]));
  for (const double p : ScaleTemperature(Doubles{0.8, 0.2}, 2, kNaN)) EXPECT_TRUE(std::isnan(p));
}

}  // namespace
}  // namespace chainfleet
