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
TEST(MixtureQuantile, OfOneGaussianIsItsOwn) {
  ExpectNear(Of({1}, {0}, {1}, 0.975), 1.959963984540054);
  ExpectNear(Of({1}, {0}, {1}, 1e-12), -7.034483825301131);
  ExpectNear(Of({0.2}, {3}, {4}, 0.025), 3 - 2 * 1.959963984540054);
  EXPECT_NEAR(Of({7}, {3}, {4}, 0.5), 3, 1e-12);
  ExpectNear(Of({1, 1, 1}, {3, 3, 3}, {4, 4, 4}, 0.975), 3 + 2 * 1.959963984540054);
}

// scipy.optimize.brentq(lambda x: log(sum(w * norm.cdf((x - m) / s)) / p), ..., xtol=1e-15), the survival function
// above 1/2.
TEST(MixtureQuantile, OfSeveralAgreesWithScipy) {
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

TEST(MixtureQuantile, OfUnsoundParametersIsNaN) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(Of({1}, {nan}, {1}, 0.5)));
  EXPECT_TRUE(std::isnan(Of({1}, {0}, {infinity}, 0.5)));
  EXPECT_TRUE(std::isnan(Of({1}, {0}, {-1}, 0.5)));
  EXPECT_TRUE(std::isnan(Of({0}, {0}, {1}, 0.5)));
  EXPECT_TRUE(std::isnan(Of({-1, 2}, {0, 0}, {1, 1}, 0.5)));
}

}  // namespace
}  // namespace chainfleet
