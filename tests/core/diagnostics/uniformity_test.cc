#include "core/diagnostics/uniformity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/rng_key.h"

namespace chainfleet {
namespace {

double Uniform(uint64_t step, uint32_t index) {
  const PhiloxBlock block = RandomBlock(RngKey{7}, RngStream::kProbe, step, index);
  return UniformDouble(block.word[0], block.word[1]);
}

// The shares of `n` chains whose draws have `width` times the deviation of the posterior and are off by `bias` of it.
std::vector<double> Shares(int64_t n, double width, double bias, uint64_t step) {
  std::vector<double> shares;
  for (uint32_t i = 0; i < n; ++i) {
    const double truth = NormalDouble(RngKey{7}, RngStream::kInit, step, i);
    shares.push_back(std::erfc(-(truth - bias) / width / std::sqrt(2)) / 2);
  }
  return shares;
}

TEST(RankShare, CountsValuesBelowTheTruthAndBreaksTies) {
  const std::vector<double> values = {-3, 0, 2, -1, 0, 5, -2, 4};
  EXPECT_DOUBLE_EQ(RankShare(values, 16, 0.25), (3 + 0.25 * 3) / 9);
  EXPECT_DOUBLE_EQ(RankShare(values, 8, 0.25), (1 + 0.25 * 2) / 5) << "every second: 4, 5, -1, 0";
  EXPECT_DOUBLE_EQ(RankShare(values, 100, 0.25), (3 + 0.25 * 3) / 9) << "more than all are not to be had";
  EXPECT_DOUBLE_EQ(RankShare(values, 6, 0.5), (0 + 0.5 * 3) / 4) << "every third from the newest on: 4, 0, 0";
  EXPECT_DOUBLE_EQ(RankShare(values, 0.1, 0.5), 0.5 / 2) << "one value is left";
  EXPECT_DOUBLE_EQ(RankShare(std::vector<double>(9, 0.0), 9, 0.7), 0.7) << "ties only";
}

// Correlated draws make the variance of shares too large: by 3.4 % here if k were half as large, by 0.04 % with k.
TEST(RankShare, CountsDrawsThatAreAboutIndependent) {
  constexpr int kChains = 40'000, kValues = 24;
  constexpr double kRho = 0.7, kEss = kValues * (1 - kRho) / (1 + kRho);
  double squares = 0;
  for (uint64_t chain = 0; chain < kChains; ++chain) {
    const RngKey key = Fold(RngKey{7}, chain);
    const auto normal = [&](uint64_t step) { return NormalDouble(key, RngStream::kInit, step, 0); };
    const double truth = normal(0);
    double value = normal(1);
    std::vector<double> differences;
    for (uint64_t i = 0; i < kValues; ++i) {
      differences.push_back(value - truth);
      value = kRho * value + std::sqrt(1 - kRho * kRho) * normal(i + 2);
    }
    squares += std::pow(RankShare(differences, kEss, Uniform(chain, 0)) - 0.5, 2);
  }
  EXPECT_NEAR(12 * squares / kChains, 1, 0.017) << "3.8 standard deviations of this ratio";
}

// With uniform shares a share p of tests has a p-value below p. 4 standard deviations of 4,000 tests are allowed.
TEST(AndersonDarlingUniform, IsUniformForUniformShares) {
  for (const int n : {20, 100}) {
    constexpr int kTests = 4000;
    std::vector<double> p_values;
    for (int t = 0; t < kTests; ++t) {
      std::vector<double> shares;
      for (int i = 0; i < n; ++i) shares.push_back(Uniform(static_cast<uint64_t>(t), static_cast<uint32_t>(i)));
      p_values.push_back(AndersonDarlingUniform(shares));
    }
    for (const double p : {0.01, 0.05, 0.2, 0.5, 0.8}) {
      const auto below = std::count_if(p_values.begin(), p_values.end(), [p](double found) { return found < p; });
      EXPECT_NEAR(static_cast<double>(below) / kTests, p, 4 * std::sqrt(p * (1 - p) / kTests)) << n;
    }
  }
}

TEST(AndersonDarlingUniform, FindsDrawsThatAreTooNarrowTooWideOrBiased) {
  EXPECT_GT(AndersonDarlingUniform(Shares(200, 1, 0, 1)), 0.01);
  EXPECT_LT(AndersonDarlingUniform(Shares(200, 0.5, 0, 1)), 1e-6) << "too narrow";
  EXPECT_LT(AndersonDarlingUniform(Shares(200, 3, 0, 1)), 1e-6) << "too wide";
  EXPECT_LT(AndersonDarlingUniform(Shares(200, 1, 0.7, 1)), 1e-6) << "biased";
  EXPECT_EQ(AndersonDarlingUniform(std::vector<double>(30, 1.0)), 0) << "an end of the range";
}

// The quantiles of A^2 for many shares: 2.492 at 5 % and 3.857 at 1 % (D'Agostino & Stephens 1986, table 4.2).
TEST(AndersonDarlingUniform, HasTheQuantilesOfTheLiterature) {
  for (const auto& [quantile, p] :
       std::vector<std::pair<double, double>>{{2.492, 0.05}, {3.857, 0.01}, {5.97, 0.001}}) {
    // Shares that are off by as much as gives A^2: found by bisection on the width.
    double narrow = 1, wide = 3;
    const auto at = [](double width) {
      std::vector<double> shares;
      constexpr int kShares = 2000;
      for (int i = 0; i < kShares; ++i) shares.push_back(std::pow((i + 0.5) / kShares, width));
      return shares;
    };
    const auto square = [](const std::vector<double>& shares) {
      const auto n = static_cast<double>(shares.size());
      double sum = 0;
      for (size_t i = 0; i < shares.size(); ++i) {
        sum += (2 * static_cast<double>(i) + 1) * std::log(shares[i] * (1 - shares[shares.size() - 1 - i]));
      }
      return -n - sum / n;
    };
    for (int i = 0; i < 60; ++i) {
      const double middle = (narrow + wide) / 2;
      (square(at(middle)) < quantile ? narrow : wide) = middle;
    }
    EXPECT_NEAR(AndersonDarlingUniform(at(narrow)), p, 0.03 * p);
  }
}

}  // namespace
}  // namespace chainfleet
