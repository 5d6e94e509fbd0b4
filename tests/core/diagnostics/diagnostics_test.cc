#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/diagnostics/ess.h"
#include "core/diagnostics/mcse.h"
#include "core/diagnostics/rank_normalize.h"
#include "core/diagnostics/rhat.h"
#include "tests/core/diagnostics/arviz_reference.h"

namespace chainfleet {
namespace {

using testing::kInfinity;
using testing::kNan;
using testing::Recipe;
using testing::Shape;

double Shaped(double y, Shape shape) {
  switch (shape) {
    case Shape::kAsItIs:
      return y;
    case Shape::kInverse:
      return 1 / y;
    case Shape::kFifths:
      return std::floor(5 * y);
    case Shape::kSign:
      return y > 0 ? 1 : -1;
  }
  return kNan;
}

// The same arithmetic as draws() of arviz_reference.py.
std::vector<double> Draws(const Recipe& r) {
  std::vector<double> values;
  uint64_t state = 2021;
  for (int64_t chain = 0; chain < r.chains; ++chain) {
    double y = 0;
    for (int64_t i = 0; i < r.draws; ++i) {
      if (i % r.hold == 0 && (i == 0 || chain >= r.still)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        y = r.phi * y + (static_cast<double>(state >> 11) + 0.5) / 9007199254740992.0 - 0.5;
      }
      const double x = Shaped(y, r.shape) * r.width, at = static_cast<double>(i), c = static_cast<double>(chain);
      values.push_back(x * (1 + r.scale * c) + r.shift * c + r.drift * at + r.offset);
    }
  }
  if (r.spoilt != 0) values[r.draws / 2] = r.spoilt;
  return values;
}

void ExpectSame(const char* name, double value, double expected) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(value)) << name << " is " << value;
  } else if (std::isinf(expected)) {
    EXPECT_EQ(value, expected) << name;
  } else {
    EXPECT_NEAR(value, expected, 1e-9 * std::abs(expected)) << name;
  }
}

TEST(Diagnostics, HaveTheValuesOfArviz) {
  for (const testing::ArvizReference& reference : testing::kArvizReferences) {
    SCOPED_TRACE(reference.recipe.name);
    const std::vector<double> values = Draws(reference.recipe);
    const Traces traces{values, reference.recipe.chains};
    ExpectSame("R-hat", Rhat(traces), reference.rhat);
    ExpectSame("bulk ESS", EssBulk(traces), reference.ess_bulk);
    ExpectSame("tail ESS", EssTail(traces), reference.ess_tail);
    ExpectSame("ESS of the mean", EssMean(traces), reference.ess_mean);
    ExpectSame("ESS of the lower quarter", EssQuantile(traces, 0.25), reference.ess_lower_quarter);
    ExpectSame("MCSE of the mean", McseMean(traces), reference.mcse_mean);
  }
}

// An autoregression x <- phi x + noise has autocorrelation time (1 + phi) / (1 - phi).
TEST(Diagnostics, KnowTheAutocorrelationTimeOfAnAutoregression) {
  for (const double phi : {-0.5, 0.0, 0.6, 0.9}) {
    const Recipe recipe = {.name = "", .chains = 20, .draws = 5000, .phi = phi, .width = 1, .hold = 1};
    const std::vector<double> values = Draws(recipe);
    const double law = 1e5 * (1 - phi) / (1 + phi);
    EXPECT_NEAR(EssMean({values, 20}), law, 0.06 * law) << phi;
    EXPECT_NEAR(Rhat({values, 20}), 1, 0.01) << phi;
  }
}

// Chains 1, 2, 4 | 2, 3, 7 | 5, 5, 8 | 0, 1, 5. With superchains {0, 2} and {1, 3} their means are 25/6 and 3, so B is
// 49/72; the variances of chain means, 121/18 and 2, and those within chains, 8/3 and 7, make W = 331/36. The values
// are those of the R package posterior, of all draws and of the first of each chain.
TEST(NestedRhat, HasTheValuesOfPosterior) {
  const std::vector<double> values = {1, 2, 4, 2, 3, 7, 5, 5, 8, 0, 1, 5}, first = {1, 2, 5, 0};
  const auto nested = [](const std::vector<double>& of, const std::vector<int64_t>& superchains) {
    return NestedRhat({of, 4}, superchains);
  };
  EXPECT_NEAR(nested(values, {1, 2, 1, 2}), std::sqrt(1 + (49 / 72.0) / (331 / 36.0)), 1e-15);
  EXPECT_NEAR(nested(values, {1, 2, 1, 2}), 1.0363484582360403, 1e-15);
  EXPECT_NEAR(nested(values, {7, 7, 5, 5}), 1.0180585192846463, 1e-15);
  EXPECT_NEAR(nested(values, {0, 1, 2, 3}), 1.3020761494054696, 1e-15) << "chains on their own";
  EXPECT_NEAR(nested(first, {1, 1, 2, 2}), 1.0377490433255416, 1e-15) << "one draw of each chain";
}

TEST(NestedRhat, UsesAsManyChainsOfEachSuperchain) {
  const std::vector<double> values = {1, 2, 4, 2, 3, 7, 9, 9, 1, 5, 5, 8, 0, 1, 5};
  EXPECT_NEAR(NestedRhat({values, 5}, std::vector<int64_t>{0, 0, 0, 1, 1}), 1.0180585192846463, 1e-15);
}

// Chains of independent draws have E B = s^2 / (M N) and E W = s^2 (1 + 1 / N), so nested R-hat^2 - 1 is about
// 1 / (M (N + 1)), for M of two or more.
TEST(NestedRhat, FallsWithTheChainsOfASuperchain) {
  for (const int64_t size : {2, 8, 32}) {
    const int64_t chains = 2000 * size, draws = 4;
    const Recipe recipe = {.name = "", .chains = chains, .draws = draws, .width = 1, .hold = 1};
    const std::vector<double> values = Draws(recipe);
    std::vector<int64_t> superchains;
    for (int64_t c = 0; c < chains; ++c) superchains.push_back(c % 2000);
    const double nested = NestedRhat({values, chains}, superchains);
    const double excess = (nested * nested - 1) * static_cast<double>(size * (draws + 1));
    EXPECT_NEAR(excess, 1, 0.15) << size;  // 4.7 standard deviations of the variance of 2,000 means
  }
}

// Superchains that each found a mode of their own agree within and not between.
TEST(NestedRhat, SeesStartsThatChainsHaveNotForgotten) {
  const Recipe recipe = {.name = "", .chains = 8, .draws = 50, .width = 1, .hold = 1};
  std::vector<double> values = Draws(recipe);
  const std::vector<int64_t> superchains = {0, 1, 0, 1, 0, 1, 0, 1};
  const double together = NestedRhat({values, 8}, superchains);
  EXPECT_LT(together, 1.02);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 5 - 3 * (values[i] + static_cast<double>(i / 50 % 2));
  EXPECT_GT(NestedRhat({values, 8}, superchains), 2);
  for (size_t i = 0; i < values.size(); ++i) values[i] += 3 * static_cast<double>(i / 50 % 2);
  EXPECT_NEAR(NestedRhat({values, 8}, superchains), together, 1e-12) << "shift and scale do not matter";
}

TEST(NestedRhat, IsNaNWhereNothingCanBeCompared) {
  const std::vector<double> same(12, 3.0), apart = {1, 1, 2, 2}, spoilt = {1, 2, kNan, 4};
  EXPECT_TRUE(std::isnan(NestedRhat({same, 4}, std::vector<int64_t>{0, 0, 1, 1})));
  EXPECT_TRUE(std::isnan(NestedRhat({apart, 2}, std::vector<int64_t>{4, 4}))) << "one superchain";
  EXPECT_TRUE(std::isnan(NestedRhat({spoilt, 2}, std::vector<int64_t>{0, 1})));
  EXPECT_TRUE(std::isnan(NestedRhat({{}, 4}, std::vector<int64_t>{0, 0, 1, 1}))) << "no draws";
  EXPECT_EQ(NestedRhat({apart, 4}, std::vector<int64_t>{0, 0, 1, 1}), kInfinity);
}

TEST(Diagnostics, AreNaNWithoutDraws) {
  for (const Traces traces : {Traces{}, Traces{{}, 4}}) {
    for (const double value : {Rhat(traces), EssMean(traces), EssTail(traces), McseMean(traces)}) {
      EXPECT_TRUE(std::isnan(value)) << value;
    }
  }
}

TEST(SplitChains, LeavesOutTheMiddleOfAnOddNumber) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(SplitChains({values, 2}), (std::vector<double>{1, 2, 6, 7, 4, 5, 9, 10}));
}

TEST(Quantile, IsLinearBetweenOrderStatistics) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_EQ(Quantile(values, 0), 1);
  EXPECT_EQ(Quantile(values, 1), 4);
  EXPECT_EQ(Quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.1), 1.3);
  EXPECT_EQ(Quantile(std::vector<double>{7}, 0.3), 7);
}

TEST(RankNormalize, GivesTiesTheScoreOfTheirAverageRank) {
  const std::vector<double> scores = RankNormalize(std::vector<double>{5, 1, 5, 9});
  EXPECT_EQ(scores[0], NormalQuantile((2.5 - 0.375) / 4.25));
  EXPECT_EQ(scores[2], scores[0]);
  EXPECT_EQ(scores[1], -scores[3]);
}

TEST(RankNormalize, GivesInfinitiesRanksAndNaNNone) {
  const std::vector<double> scores = RankNormalize(std::vector<double>{kInfinity, 1, kInfinity, -kInfinity});
  EXPECT_EQ(scores[0], NormalQuantile((3.5 - 0.375) / 4.25));
  EXPECT_EQ(scores[2], scores[0]);
  EXPECT_EQ(scores[1], NormalQuantile((2 - 0.375) / 4.25));
  for (const double score : RankNormalize(std::vector<double>{3, kNan, kInfinity, kNan}))
    EXPECT_TRUE(std::isnan(score));
  EXPECT_EQ(RankNormalize(std::vector<double>(5, kInfinity)), std::vector<double>(5, 0.0));
}

TEST(Diagnostics, EndForInfiniteValues) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back(i % 3 == 0 ? i : kInfinity);  // two thirds are infinite
  EXPECT_TRUE(std::isnan(Rhat({values, 4}))) << "chains that agree on infinity have not converged";
  EXPECT_FALSE(std::isnan(EssBulk({values, 4}))) << "ranks exist";
  values[7] = kNan;
  EXPECT_TRUE(std::isnan(Rhat({values, 4})));
  EXPECT_TRUE(std::isnan(EssBulk({values, 4})));
  for (const double value : {kInfinity, -kInfinity}) {
    const std::vector<double> same(40, value);
    EXPECT_TRUE(std::isnan(Rhat({same, 4})));
    EXPECT_TRUE(std::isnan(McseMean({same, 4})));
  }
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i % 2 == 0 ? -kInfinity : kInfinity;  // the median is no number
  EXPECT_TRUE(std::isnan(Rhat({values, 4})));
}

TEST(NormalQuantile, InvertsTheNormalDistribution) {
  for (const double z : {-30.0, -8.0, -2.5, -1.0, -0.3, 0.0, 0.7, 1.2, 4.0}) {
    EXPECT_NEAR(NormalQuantile(std::erfc(-z / std::sqrt(2)) / 2), z, 1e-11 * (1 + std::abs(z))) << z;
  }
  EXPECT_EQ(NormalQuantile(0), -kInfinity);
  EXPECT_EQ(NormalQuantile(1), kInfinity);
}

}  // namespace
}  // namespace chainfleet
