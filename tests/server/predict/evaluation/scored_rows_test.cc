#include "server/predict/evaluation/scored_rows.h"

#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/base/limits.h"
#include "core/scores/histogram.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/predict/fake_serving.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr DrawKind kTheta = DrawKind::kTheta, kThetaA = DrawKind::kThetaA;
const std::vector<DrawKind> kBoth = {kTheta, kThetaA};

// P(class 0) of draw 0 is .9, .2, .6 on rows 0 to 2, of draw 1 is .5, .4, .8; theta_a always says .5.
std::vector<double> ByHand(const ChainId&, DrawKind kind, int64_t draw, int64_t row) {
  if (kind == kThetaA) return {0.5, 0.5};
  const double p[2][3] = {{0.9, 0.2, 0.6}, {0.5, 0.4, 0.8}};
  return {p[draw][row], 1 - p[draw][row]};
}

// Draws 0 and 1 of one chain, weights 3 and 1.
std::vector<PartialPrediction> Sums(const std::vector<int64_t>& rows, const std::vector<DrawKind>& kinds,
                                    const std::vector<int32_t>* labels) {
  std::vector<PartialPrediction> sums;
  for (const DrawKind kind : kinds) {
    sums.push_back(testing::SumDraws({"job-aaaaaa", 0}, kind, {{0, 3}, {1, 1}}, rows, 2, ByHand, labels));
  }
  return sums;
}

TEST(ScoredRows, PutsBlocksInTheirPlaceWhateverCameFirst) {
  const std::vector<int32_t> labels = {0, 1, 0};
  ScoredRows forwards(kBoth, 3, Classes{2}, labels), backwards(kBoth, 3, Classes{2}, labels);
  forwards.Add({0, 2}, Sums({0, 1}, kBoth, &labels));
  forwards.Add({2, 1}, Sums({2}, kBoth, &labels));
  backwards.Add({2, 1}, Sums({2}, {kThetaA, kTheta}, &labels));
  backwards.Add({0, 2}, Sums({0, 1}, {kThetaA, kTheta}, &labels));
  ASSERT_THAT(forwards.posteriors(), SizeIs(3));
  const ClassRows& theta = forwards.posteriors()[0].classes();
  EXPECT_EQ(forwards.posteriors()[0].what, "theta");
  for (const auto& [row, p] : {std::pair{0, 0.8}, {1, 0.25}, {2, 0.65}}) {
    EXPECT_NEAR(theta.mean_probability[static_cast<size_t>(2 * row)], p, 1e-15) << row;
    EXPECT_NEAR(theta.predictive_entropy[static_cast<size_t>(row)], -p * std::log(p) - (1 - p) * std::log(1 - p),
                1e-15);
  }
  EXPECT_EQ(forwards.posteriors()[2].what, "all");
  EXPECT_NEAR(forwards.posteriors()[2].classes().mean_probability[0], 0.65, 1e-15);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(forwards.posteriors()[i].classes().mean_probability,
              backwards.posteriors()[i].classes().mean_probability);
    EXPECT_EQ(forwards.posteriors()[i].classes().mutual_information,
              backwards.posteriors()[i].classes().mutual_information);
  }
}

TEST(ScoredRows, ScoresSingleDrawsByTheirWeights) {
  const std::vector<int32_t> labels = {0, 1, 0};
  ScoredRows rows(kBoth, 3, Classes{2}, labels);
  rows.Add({0, 2}, Sums({0, 1}, kBoth, &labels));
  rows.Add({2, 1}, Sums({2}, kBoth, &labels));
  const std::vector<Scores> table = ScoreTable(rows, nullptr, 10);
  ASSERT_THAT(table, SizeIs(5));
  EXPECT_EQ(table[0].what, "single theta");
  EXPECT_EQ(table[0].num_draws, 2);
  EXPECT_EQ(table[0].accuracy, 1);
  EXPECT_NEAR(table[0].nll, -(3 * std::log(0.9 * 0.8 * 0.6) + std::log(0.5 * 0.6 * 0.8)) / 12, 1e-14);
  const double brier = 2 * (3 * (0.1 * 0.1 + 0.2 * 0.2 + 0.4 * 0.4) + (0.5 * 0.5 + 0.4 * 0.4 + 0.2 * 0.2)) / 12;
  EXPECT_NEAR(table[0].brier, brier, 1e-14);
  EXPECT_TRUE(std::isnan(table[0].ece));
  EXPECT_NEAR(table[1].mean_predictive_entropy, std::log(2), 1e-14);
  EXPECT_NEAR(table[1].brier, 0.5, 1e-14);
}

// A Metropolis chain stayed three times as long at the draw that is right.
TEST(ScoredRows, WeighsTheHitsAndLikelihoodsOfSingleDrawsAsTheAverageDoes) {
  const auto says = [](const ChainId&, DrawKind, int64_t draw, int64_t) {
    return draw == 0 ? std::vector<double>{0.9, 0.1} : std::vector<double>{0.2, 0.8};
  };
  const std::vector<int32_t> labels = {0};
  PartialPrediction sums = testing::SumDraws({"job-aaaaaa", 0}, kTheta, {{0, 3}, {1, 1}}, {0}, 2, says, &labels);
  ScoredRows weighted({kTheta}, 1, Classes{2}, labels), alike({kTheta}, 1, Classes{2}, labels);
  weighted.Add({0, 1}, {sums});
  EXPECT_EQ(ScoreTable(weighted, nullptr, 10)[0].accuracy, 0.75);
  EXPECT_NEAR(ScoreTable(weighted, nullptr, 10)[0].nll, -(3 * std::log(0.9) + std::log(0.2)) / 4, 1e-14);
  sums.draw_weights.clear();  // from a worker of an older release
  alike.Add({0, 1}, {sums});
  EXPECT_EQ(ScoreTable(alike, nullptr, 10)[0].accuracy, 0.5);
}

// Five labelled rows and three shifted ones; P(class 0) as listed, of one draw.
std::vector<double> Listed(const ChainId&, DrawKind, int64_t, int64_t row) {
  const double p[] = {0.9, 0.2, 0.55, 0.6, 0.3, 0.5, 0.85, 0.45};
  return {p[row], 1 - p[row]};
}

ScoredRows ListedRows(std::vector<int64_t> rows, const std::vector<int32_t>& labels) {
  ScoredRows scored({kTheta}, static_cast<int64_t>(rows.size()), Classes{2},
                    labels.empty() ? std::nullopt : std::optional<TargetValues>(labels));
  const auto num_rows = static_cast<int64_t>(rows.size());
  scored.Add({0, num_rows}, {testing::SumDraws({"job-aaaaaa", 0}, kTheta, {{0, 1}}, rows, 2, Listed,
                                               labels.empty() ? nullptr : &labels)});
  return scored;
}

// python3: from math import log; from sklearn.metrics import roc_auc_score as a, average_precision_score as p
//          H = lambda ps: [-(x * log(x) + (1 - x) * log(1 - x)) for x in ps]
//          inside, outside, wrong = H([.9, .2, .55, .6, .3]), H([.5, .85, .45]), [0, 0, 1, 0, 1]
//          a(wrong, inside), p(wrong, inside); a([0] * 5 + [1] * 3, inside + outside), p(the same)
TEST(ScoredRows, TellsWrongAndShiftedRowsByTheirEntropyAsScikitLearnDoes) {
  const std::vector<int32_t> labels = {0, 1, 1, 0, 0};
  const ScoredRows rows = ListedRows({0, 1, 2, 3, 4}, labels), ood = ListedRows({5, 6, 7}, {});
  const std::vector<Scores> table = ScoreTable(rows, &ood, 4);
  const Scores& all = table.back();
  EXPECT_NEAR(*all.misclassification_auroc, 0.8333333333333334, 1e-14);
  EXPECT_NEAR(*all.misclassification_aupr, 0.8333333333333333, 1e-14);
  EXPECT_NEAR(*all.ood_auroc, 0.7, 1e-14);
  EXPECT_NEAR(*all.ood_aupr, 0.6984126984126984, 1e-14);
  EXPECT_FALSE(table[0].misclassification_auroc.has_value()) << "single draws have none";
  const ScoredRows sure = ListedRows({0, 1}, {0, 1});
  EXPECT_FALSE(ScoreAll(sure, 4).misclassification_auroc.has_value()) << "no row is wrong";
}

TEST(ScoredRows, DrawsReliabilityAndEntropiesAsHistograms) {
  const std::vector<int32_t> labels = {0, 1, 1, 0, 0};
  const ScoredRows rows = ListedRows({0, 1, 2, 3, 4}, labels), ood = ListedRows({5, 6, 7}, {});
  const Scores all = ScoreTable(rows, &ood, 4).back();
  ASSERT_THAT(all.reliability, SizeIs(4));  // confidences .9 .8 .55 .6 .7, rows 2 and 4 wrong
  EXPECT_EQ(all.reliability[1].count, 0);
  const CalibrationBin& third = all.reliability[2];
  EXPECT_EQ(third.lower, 0.5);
  EXPECT_EQ(third.upper, 0.75);
  EXPECT_EQ(third.count, 3);
  EXPECT_NEAR(third.mean_confidence, (0.55 + 0.6 + 0.7) / 3, 1e-15);
  EXPECT_NEAR(third.accuracy, 1.0 / 3, 1e-15);
  ASSERT_THAT(all.entropy_histogram, SizeIs(limits::kEntropyBins));
  // H(.9) is .469 of log 2, bin 14 of 30; H(.5) is all of it, the last bin.
  EXPECT_EQ(all.entropy_histogram[14], 1);
  EXPECT_EQ(all.ood_entropy_histogram.back(), 2);  // .5 and .45, which is .993
  EXPECT_EQ(std::accumulate(all.entropy_histogram.begin(), all.entropy_histogram.end(), int64_t{0}), 5);
  EXPECT_NEAR(*all.entropy_divergence, SymmetrisedDivergence(all.entropy_histogram, all.ood_entropy_histogram), 0);
  EXPECT_FALSE(ScoreAll(rows, 4).entropy_divergence.has_value());
}

TEST(ScoredRows, NamesTheMostAndTheLeastCertainRows) {
  const ScoredRows rows = ListedRows({0, 1, 2, 3, 4}, {0, 1, 1, 0, 0});
  const auto order = [&](int64_t count) {
    std::vector<int64_t> named;
    for (const ExampleRow& example : ExampleRows(rows, count)) named.push_back(example.row);
    return named;
  };
  EXPECT_THAT(order(2), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(order(12), ElementsAre(0, 1, 4, 2, 3)) << "no row twice";
  EXPECT_THAT(order(0), IsEmpty());
  const ExampleRow least = ExampleRows(rows, 1).back();
  EXPECT_EQ(least.row, 2);
  EXPECT_EQ(least.label, 1);
  EXPECT_EQ(least.predicted, 0);
  EXPECT_NEAR(least.max_probability, 0.55, 1e-15);
  EXPECT_NEAR(least.predictive_entropy, -0.55 * std::log(0.55) - 0.45 * std::log(0.45), 1e-15);
}

TEST(ScoredRows, SinglesHaveTheSameBitsWhateverBlockCameFirst) {
  const std::vector<int32_t> labels(300, 1);
  const auto block = [&](int64_t first) {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < 100; ++i) rows.push_back(first + i);
    return std::vector<PartialPrediction>{testing::SumDraws({"job-aaaaaa", 0}, kTheta, {{0, 1}, {1, 1}}, rows, 2,
                                                            testing::ArbitraryProbabilities(2), &labels)};
  };
  std::vector<double> scores;
  for (const std::vector<int64_t>& order : {std::vector<int64_t>{0, 100, 200}, {200, 0, 100}, {100, 200, 0}}) {
    ScoredRows rows({kTheta}, 300, Classes{2}, labels);
    for (const int64_t first : order) rows.Add({first, 100}, block(first));
    const SingleDraws single = rows.Singles()[0];
    if (scores.empty()) scores = {single.log_likelihood, single.brier, single.entropy};
    EXPECT_THAT(scores, ElementsAre(single.log_likelihood, single.brier, single.entropy));
  }
}

TEST(ScoredRows, RestsOnTheFewestDrawsOfAnyBlock) {
  const std::vector<int32_t> labels = {0, 1, 0};
  const auto both = Sums({0, 1}, {kTheta}, &labels);
  const std::vector<PartialPrediction> one = {
      testing::SumDraws({"job-aaaaaa", 0}, kTheta, {{1, 1}}, {2}, 2, ByHand, &labels)};
  for (const bool fewest_first : {true, false}) {
    ScoredRows rows({kTheta}, 3, Classes{2}, labels);
    EXPECT_EQ(rows.draws_used(), 0) << "nothing came yet";
    if (fewest_first) rows.Add({2, 1}, one);
    rows.Add({0, 2}, both);
    if (!fewest_first) {
      EXPECT_EQ(rows.draws_used(), 2);
      rows.Add({2, 1}, one);
    }
    EXPECT_EQ(rows.draws_used(), 1);
    EXPECT_EQ(rows.Singles()[0].num_draws, 2) << "the most of any block";
  }
}

TEST(ScoredRows, WithoutAnyDrawHaveNone) {
  ScoredRows rows({kTheta}, 2, Classes{2}, std::vector<int32_t>{0, 1});
  rows.Add({0, 2}, {});
  EXPECT_EQ(rows.draws_used(), 0);
  EXPECT_EQ(rows.Singles()[0].num_draws, 0);
}

TEST(ScoredRows, WithoutLabelsKeepOnlyWhatTheShiftedSetNeeds) {
  ScoredRows rows({kTheta}, 3, Classes{2}, {});
  rows.Add({0, 3}, Sums({0, 1, 2}, {kTheta}, nullptr));
  EXPECT_THAT(rows.posteriors()[0].classes().mean_probability, IsEmpty());
  EXPECT_THAT(rows.posteriors()[0].classes().predictive_entropy, SizeIs(3));
  EXPECT_EQ(rows.Singles()[0].num_draws, 0);
}

TEST(ScoreTable, TellsTheShiftedSetApartByEachEntropy) {
  const std::vector<int32_t> labels = {0, 0, 0};  // labels of every row
  ScoredRows rows({kTheta}, 1, Classes{2}, std::vector<int32_t>{labels[2]}), ood({kTheta}, 2, Classes{2}, {});
  // Both shifted rows have means (.8 and .25) surer than .65, but draws that disagree more.
  rows.Add({0, 1}, Sums({2}, {kTheta}, &labels));
  ood.Add({0, 2}, Sums({0, 1}, {kTheta}, nullptr));
  const std::vector<Scores> table = ScoreTable(rows, &ood, 10);
  EXPECT_FALSE(table[0].ood_auroc.has_value()) << "single draws have none";
  EXPECT_EQ(*table[1].ood_auroc, 0);
  EXPECT_EQ(*table[1].ood_auroc_mutual_information, 1);
  const auto entropy = [](double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); };
  EXPECT_NEAR(*table[1].ood_mean_predictive_entropy, (entropy(0.8) + entropy(0.25)) / 2, 1e-14);
}

TEST(ScoreTable, CalibratesTheAveragesInTheBinsAsked) {
  const std::vector<int32_t> labels = {0, 0, 0};
  ScoredRows rows({kTheta}, 3, Classes{2}, labels);
  rows.Add({0, 3}, Sums({0, 1, 2}, {kTheta}, &labels));  // sure by .8, .75 (wrongly) and .65
  EXPECT_NEAR(ScoreTable(rows, nullptr, 1)[1].ece, std::abs(2.2 / 3 - 2.0 / 3), 1e-14);
  EXPECT_NEAR(ScoreTable(rows, nullptr, 100)[1].ece, (0.2 + 0.75 + 0.35) / 3, 1e-14);
}

}  // namespace
}  // namespace chainfleet
