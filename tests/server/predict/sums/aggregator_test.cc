#include "server/predict/sums/aggregator.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/domain/prediction_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/predict/fake_serving.h"

namespace chainfleet {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One row, two classes, one draw of weight `w` with P(class 0) = p.
PartialPrediction OneDraw(int32_t chain, DrawKind kind, double w, double p) {
  const auto probabilities = [p](const ChainId&, DrawKind, int64_t, int64_t) { return std::vector<double>{p, 1 - p}; };
  return testing::SumDraws({"j", chain}, kind, {{0, w}}, {0}, 2, probabilities);
}

Prediction AverageOf(const std::vector<PartialPrediction>& partials) {
  std::vector<const PartialPrediction*> pointers;
  for (const PartialPrediction& partial : partials) pointers.push_back(&partial);
  return Average(pointers, /*with_errors=*/true);
}

double H(double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); }

TEST(Aggregator, AveragesTwoChainsAsByHand) {
  const Prediction average = AverageOf({OneDraw(0, DrawKind::kTheta, 1, 0.8), OneDraw(1, DrawKind::kTheta, 1, 0.4)});
  EXPECT_EQ(average.draws_used, 2);
  EXPECT_THAT(average.scores.classes().mean_probability, ElementsAre(DoubleNear(0.6, 1e-15), DoubleNear(0.4, 1e-15)));
  EXPECT_THAT(average.scores.classes().predictive_entropy, ElementsAre(DoubleNear(H(0.6), 1e-15)));
  EXPECT_THAT(average.scores.classes().expected_entropy, ElementsAre(DoubleNear((H(0.8) + H(0.4)) / 2, 1e-15)));
  EXPECT_THAT(average.scores.classes().mutual_information,
              ElementsAre(DoubleNear(H(0.6) - (H(0.8) + H(0.4)) / 2, 1e-15)));
}

// Without chain c: (.4 + .9)/2 = .65, (.8 + .9)/2 = .85, (.8 + .4)/2 = .6; their mean is .7;
// 2/3 (.05^2 + .15^2 + .1^2) = .07/3.
TEST(Aggregator, JackknifesOverChainsAsByHand) {
  const Prediction average = AverageOf({OneDraw(0, DrawKind::kTheta, 1, 0.8), OneDraw(1, DrawKind::kTheta, 1, 0.4),
                                        OneDraw(2, DrawKind::kTheta, 1, 0.9)});
  const double error = std::sqrt(0.07 / 3);
  EXPECT_THAT(average.errors.classes().mean_probability,
              ElementsAre(DoubleNear(error, 1e-12), DoubleNear(error, 1e-12)));
}

// Means 1, 3 (weight 2) and 4 on one row, variances 1, 4 and 1: E = 11/4, aleatoric 10/4, E m^2 = 35/4.
TEST(Aggregator, AveragesNumbersAsByHand) {
  const auto moments = [](const ChainId& chain, DrawKind, int64_t draw, int64_t) {
    if (chain.index == 1) return std::vector<double>{4, 1};
    return draw == 0 ? std::vector<double>{1, 1} : std::vector<double>{3, 4};
  };
  const Prediction average =
      AverageOf({testing::SumNumberDraws({"j", 0}, DrawKind::kTheta, {{0, 1}, {1, 2}}, {0}, moments),
                 testing::SumNumberDraws({"j", 1}, DrawKind::kTheta, {{0, 1}}, {0}, moments)});
  EXPECT_EQ(average.draws_used, 3);
  EXPECT_EQ(average.targets, Targets(Numbers()));
  EXPECT_THAT(average.scores.numbers().mean, ElementsAre(DoubleNear(2.75, 1e-15)));
  EXPECT_THAT(average.scores.numbers().variance_aleatoric, ElementsAre(DoubleNear(2.5, 1e-15)));
  EXPECT_THAT(average.scores.numbers().variance_epistemic, ElementsAre(DoubleNear(8.75 - 2.75 * 2.75, 1e-14)));
  // Without chain 0: 4, 1 and 0; without chain 1: 7/3, 3 and 19/3 - (7/3)^2.
  EXPECT_THAT(average.errors.numbers().mean, ElementsAre(DoubleNear((4 - 7.0 / 3) / 2, 1e-12)));
  EXPECT_THAT(average.errors.numbers().variance_aleatoric, ElementsAre(DoubleNear(1, 1e-12)));
  EXPECT_THAT(average.errors.numbers().variance_epistemic, ElementsAre(DoubleNear(4.0 / 9, 1e-12)));
  Prediction whole;
  AppendRows(average, &whole);
  AppendRows(average, &whole);
  EXPECT_EQ(whole.num_rows, 2);
  EXPECT_THAT(whole.scores.numbers().mean, ElementsAre(2.75, 2.75));
  EXPECT_EQ(whole.scores.numbers().variance_aleatoric.size(), 2u);
  EXPECT_EQ(whole.scores.numbers().variance_epistemic.size(), 2u);
}

TEST(Aggregator, TakesBothKindsOfAChainAsOneJackknifeGroup) {
  const Prediction average = AverageOf({OneDraw(0, DrawKind::kTheta, 1, 0.9), OneDraw(0, DrawKind::kThetaA, 1, 0.7),
                                        OneDraw(1, DrawKind::kTheta, 1, 0.5), OneDraw(1, DrawKind::kThetaA, 1, 0.3)});
  EXPECT_EQ(average.draws_used, 2);
  EXPECT_NEAR(average.scores.classes().mean_probability[0], 0.6, 1e-15);
  EXPECT_NEAR(average.errors.classes().mean_probability[0], 0.2, 1e-12);  // left out: .4 and .8
}

TEST(Aggregator, TellsHowManyDrawsDisagree) {
  const Prediction average = AverageOf({OneDraw(0, DrawKind::kTheta, 1, 0.8), OneDraw(1, DrawKind::kTheta, 1, 0.4),
                                        OneDraw(2, DrawKind::kTheta, 2, 0.9)});
  EXPECT_THAT(average.scores.classes().variation_ratio, ElementsAre(DoubleNear(0.25, 1e-15)));
  EXPECT_THAT(average.scores.classes().max_probability, ElementsAre(DoubleNear(0.75, 1e-15)));
  EXPECT_THAT(average.scores.classes().log_probability,
              ElementsAre(DoubleNear(std::log(0.75), 1e-15), DoubleNear(std::log(0.25), 1e-15)));
}

// Against the definition: averages without each chain in turn.
TEST(Aggregator, JackknifesEveryScore) {
  const auto probabilities = testing::ArbitraryProbabilities(4);
  std::vector<PartialPrediction> all;
  for (int32_t chain = 0; chain < 5; ++chain) {
    all.push_back(testing::SumDraws({"j", chain}, DrawKind::kTheta, {{0, 1}, {1, 0.5}}, {0, 1, 2}, 4, probabilities));
  }
  const Prediction average = AverageOf(all);
  for (const auto& field : ClassScores::kArrays) {
    const std::vector<double>& error = average.errors.classes().*field.values;
    ASSERT_EQ(error.size(), (average.scores.classes().*field.values).size()) << field.name;
    for (size_t i = 0; i < error.size(); ++i) {
      std::vector<double> without;
      for (size_t c = 0; c < all.size(); ++c) {
        std::vector<PartialPrediction> others = all;
        others.erase(others.begin() + static_cast<int64_t>(c));
        without.push_back((AverageOf(others).scores.classes().*field.values)[i]);
      }
      double mean = 0, squares = 0;
      for (const double value : without) mean += value / 5;
      for (const double value : without) squares += (value - mean) * (value - mean);
      EXPECT_NEAR(error[i], std::sqrt(4.0 / 5 * squares), 1e-9) << field.name << " " << i;
    }
  }
}

// Subtracting a large sum from a total would leave only rounding errors of a small one.
TEST(Aggregator, JackknifesAProbabilityThatIsTinyOnOneChain) {
  const Prediction average = AverageOf({OneDraw(0, DrawKind::kTheta, 1, 1e-20), OneDraw(1, DrawKind::kTheta, 1, 0.5)});
  EXPECT_NEAR(average.errors.classes().log_probability[0], (std::log(0.5) - std::log(1e-20)) / 2, 1e-9);
  EXPECT_NEAR(average.errors.classes().mean_probability[0], 0.25, 1e-12);
}

TEST(Aggregator, WeighsDraws) {
  const Prediction average = AverageOf({OneDraw(0, DrawKind::kTheta, 3, 0.8), OneDraw(1, DrawKind::kTheta, 1, 0.4)});
  EXPECT_NEAR(average.scores.classes().mean_probability[0], 0.7, 1e-15);
  EXPECT_NEAR(average.scores.classes().expected_entropy[0], (3 * H(0.8) + H(0.4)) / 4, 1e-15);
  EXPECT_NEAR(average.errors.classes().mean_probability[0], 0.2, 1e-12);  // left out: .4 and .8, around their mean .6
}

TEST(Aggregator, DoesNotKnowTheErrorOfOneChain) {
  EXPECT_FALSE(AverageOf({OneDraw(0, DrawKind::kTheta, 1, 0.8)}).errors.any());
}

TEST(Aggregator, LeavesOutChainsWithoutDraws) {
  PartialPrediction empty = OneDraw(1, DrawKind::kTheta, 1, 0.4);
  empty.num_draws = 0;
  empty.sum_w = 0;
  empty.classes().sum_wp = {0, 0};
  const Prediction average = AverageOf({OneDraw(0, DrawKind::kTheta, 1, 0.8), empty});
  EXPECT_EQ(average.draws_used, 1);
  EXPECT_NEAR(average.scores.classes().mean_probability[0], 0.8, 1e-15);
  EXPECT_FALSE(average.errors.any());
  EXPECT_EQ(AverageOf({empty}).draws_used, 0);
  EXPECT_EQ(AverageOf({empty}).targets, Targets(Classes{2})) << "no draw of a classification is no regression";
}

TEST(Aggregator, GivesTheSameBitsInEveryOrder) {
  std::vector<PartialPrediction> partials;
  for (int32_t chain = 0; chain < 12; ++chain) {
    for (const DrawKind kind : {DrawKind::kTheta, DrawKind::kThetaA}) {
      partials.push_back(testing::SumDraws({"j", chain}, kind, {{0, 1}, {1, 0.3}}, {0, 1, 2, 3}, 5,
                                           testing::ArbitraryProbabilities(5)));
    }
  }
  const Prediction first = AverageOf(partials);
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(partials.begin(), partials.end(), random);
    const Prediction again = AverageOf(partials);
    EXPECT_EQ(again.scores.classes().mean_probability, first.scores.classes().mean_probability);
    EXPECT_EQ(again.scores.classes().expected_entropy, first.scores.classes().expected_entropy);
    EXPECT_EQ(again.errors.classes().mean_probability, first.errors.classes().mean_probability);
  }
}

TEST(Aggregator, AppendsRowsAndKeepsTheFewestDraws) {
  Prediction whole;
  AppendRows(AverageOf({OneDraw(0, DrawKind::kTheta, 1, 0.8), OneDraw(1, DrawKind::kTheta, 1, 0.4)}), &whole);
  EXPECT_EQ(whole.errors.classes().mean_probability.size(), 2u);
  AppendRows(AverageOf({OneDraw(0, DrawKind::kTheta, 1, 0.25)}), &whole);
  EXPECT_EQ(whole.num_rows, 2);
  EXPECT_EQ(whole.draws_used, 1);
  EXPECT_THAT(whole.scores.classes().mean_probability,
              ElementsAre(DoubleNear(0.6, 1e-15), DoubleNear(0.4, 1e-15), DoubleEq(0.25), DoubleEq(0.75)));
  EXPECT_FALSE(whole.errors.any());
}

}  // namespace
}  // namespace chainfleet
