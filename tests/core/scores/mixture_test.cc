#include "core/scores/mixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace chainfleet {
namespace {

using Doubles = std::vector<double>;

double Of(const Doubles& weight, const Doubles& mean, const Doubles& variance, double level) {
  return MixtureQuantile(weight, mean, variance, level);
}

void ExpectNear(double got, double wanted) { EXPECT_NEAR(got, wanted, 1e-10 * std::max(std::abs(wanted), 1.0)); }

// scipy.stats.norm.ppf of SciPy 1.17.
TEST(MixtureQuantile, EqualsTheQuantileOfASingleGaussian) {
  ExpectNear(Of({1}, {0}, {1}, 0.975), 1.959963984540054);
  ExpectNear(Of({1}, {0}, {1}, 1e-12), -7.034483825301131);
  ExpectNear(Of({0.2}, {3}, {4}, 0.025), 3 - 2 * 1.959963984540054);
  EXPECT_NEAR(Of({7}, {3}, {4}, 0.5), 3, 1e-12);
  ExpectNear(Of({1, 1, 1}, {3, 3, 3}, {4, 4, 4}, 0.975), 3 + 2 * 1.959963984540054);
}

// scipy.optimize.brentq(lambda x: log(sum(w * norm.cdf((x - m) / s)) / p), ..., xtol=1e-15), the survival function
// above 1/2.
TEST(MixtureQuantile, AgreesWithScipyForSeveralGaussians) {
  const Doubles w = {1, 3}, m = {-2, 1}, v = {0.25, 4};
  ExpectNear(Of(w, m, v, 1e-9), -10.901806532322636);
  ExpectNear(Of(w, m, v, 0.05), -2.647379879166102);
  ExpectNear(Of(w, m, v, 0.3), -1.4432883319425998);
  ExpectNear(Of(w, m, v, 0.5), 0.13856275764596368);
  ExpectNear(Of(w, m, v, 0.95), 4.0021718920880485);
  ExpectNear(Of(w, m, v, 1 - 1e-9), 12.901806541579358);
}

TEST(MixtureQuantile, FindsItsWayBetweenFarNarrowPeaks) {
  const Doubles w = {1, 1, 2}, m = {-100, 0, 100}, v = {1e-4, 1, 1e-2};
  ExpectNear(Of(w, m, v, 0.025), -100.01281551565545);
  ExpectNear(Of(w, m, v, 0.49), 1.7506860712521697);
  ExpectNear(Of(w, m, v, 0.66), 99.95323012008855);
  ExpectNear(Of(w, m, v, 0.975), 100.16448536269515);
}

TEST(MixtureQuantile, IgnoresWhatHasNoWeightAndTakesPointMasses) {
  EXPECT_DOUBLE_EQ(Of({1, 0}, {3, 1e9}, {4, 1}, 0.3), Of({1}, {3}, {4}, 0.3));
  EXPECT_NEAR(Of({1}, {5}, {0}, 0.2), 5, 1e-9);
  EXPECT_NEAR(Of({1, 1}, {-5, 5}, {0, 0}, 0.2), -5, 1e-9);
  EXPECT_NEAR(Of({1, 1}, {-5, 5}, {0, 0}, 0.9), 5, 1e-9);
}

TEST(MixtureQuantile, RisesWithItsLevelToTheVeryEnds) {
  const Doubles w = {1, 2}, m = {-1, 4}, v = {1, 0.01};
  double last = -std::numeric_limits<double>::infinity();
  for (const double level : {1e-300, 1e-20, 0.001, 0.2, 1.0 / 3, 0.4, 0.5, 0.50001, 0.9, 0.999, 1 - 1e-16}) {
    const double x = Of(w, m, v, level);
    EXPECT_GT(x, last) << level;
    last = x;
  }
}

TEST(MixtureQuantile, IsNaNForUnsoundParameters) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(Of({1}, {nan}, {1}, 0.5)));
  EXPECT_TRUE(std::isnan(Of({1}, {0}, {infinity}, 0.5)));
  EXPECT_TRUE(std::isnan(Of({1}, {0}, {-1}, 0.5)));
  EXPECT_TRUE(std::isnan(Of({0}, {0}, {1}, 0.5)));
  EXPECT_TRUE(std::isnan(Of({-1, 2}, {0, 0}, {1, 1}, 0.5)));
}

// Values of scipy.stats.norm.
TEST(MixtureSums, AddUpOverPartsAndAreExactInBothTails) {
  const Doubles w = {2, 1}, m = {3, 0}, v = {4, 1};
  const auto at = [&](double x, bool upper) { return MixtureSumsAt(w, m, v, x, upper); };
  ExpectNear(at(5, false).tail, 2 * 0.8413447460685429 + (1 - 2.866515718791933e-07));
  ExpectNear(at(5, true).tail, 2 * 0.15865525393145707 + 2.866515718791933e-07);
  ExpectNear(at(5, false).density, 2 * 0.24197072451914337 / 2 + 1.4867195147342979e-06);
  EXPECT_DOUBLE_EQ(at(5, true).density, at(5, false).density);
  const MixtureSums upper = MixtureSumsAt(Doubles{2}, Doubles{3}, Doubles{4}, 23, true);
  EXPECT_NEAR(upper.tail / (2 * 7.619853024160525e-24), 1, 1e-12);
  for (const bool side : {false, true}) {
    const MixtureSums mass = MixtureSumsAt(Doubles{2}, Doubles{3}, Doubles{0}, 3, side);
    EXPECT_EQ(mass.tail, 2) << "a point mass is on either side of itself";
    EXPECT_EQ(mass.density, 0);
  }
  EXPECT_TRUE(std::isnan(at(std::nan(""), false).tail));
}

// A distant lower part takes a share of the mixture. The tail at the quantile grows by the share, and the quantile
// moves.
TEST(MixtureQuantileError, IsHowFarTheQuantileMovesWithTheTailBelowIt) {
  const Doubles w = {1, 3}, m = {-2, 1}, v = {0.25, 4};
  const double share = 1e-6;
  for (const double level : {0.05, 0.3, 0.5, 0.95}) {
    const double q = Of(w, m, v, level), density = MixtureSumsAt(w, m, v, q, false).density / 4;
    const double moved = Of({1, 3, 4 * share / (1 - share)}, {-2, 1, -1e3}, {0.25, 4, 1}, level);
    EXPECT_NEAR((q - moved) / MixtureQuantileError(share * (1 - level), density), 1, 1e-4) << level;
  }
}

TEST(MixtureQuantileError, IsUnknownWithoutDensityUnlessNothingIsInDoubt) {
  EXPECT_EQ(MixtureQuantileError(0, 0), 0);
  EXPECT_EQ(MixtureQuantileError(0, 2), 0);
  EXPECT_TRUE(std::isnan(MixtureQuantileError(0.1, 0)));
  EXPECT_TRUE(std::isnan(MixtureQuantileError(0.1, 1e-320)));
  EXPECT_TRUE(std::isnan(MixtureQuantileError(std::nan(""), 1)));
  EXPECT_DOUBLE_EQ(MixtureQuantileError(0.1, 0.25), 0.4);
}

}  // namespace
}  // namespace chainfleet
