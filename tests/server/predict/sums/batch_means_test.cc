#include "server/predict/sums/batch_means.h"

#include <cmath>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/predict/serving/chain_parts.h"
#include "server/predict/serving/predict_router.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// P(class 0) of each draw, the newest first, in parts of these lengths.
std::vector<PartialPrediction> Parts(const std::vector<double>& p, const std::vector<int64_t>& lengths,
                                     const std::vector<DrawKind>& kinds = {DrawKind::kTheta}) {
  const auto says = [&p](const ChainId&, DrawKind, int64_t draw, int64_t) {
    return std::vector<double>{p[static_cast<size_t>(draw)], 1 - p[static_cast<size_t>(draw)]};
  };
  std::vector<PartialPrediction> parts;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    std::vector<std::pair<int64_t, double>> draws;
    for (int64_t i = 0; i < length; ++i) draws.emplace_back(first + i, 1);
    for (const DrawKind kind : kinds) parts.push_back(testing::SumDraws({"j", 0}, kind, draws, {0}, 2, says));
    first += length;
  }
  return parts;
}

// Four blocks of one: mean .65, squares .15^2 + .05^2 + .15^2 + .05^2 = .05; .05 / (4 * 3).
TEST(BatchMeans, TellsTheErrorOfFourDrawsAsByHand) {
  const PredictiveScores errors = BatchMeansErrors(Parts({0.5, 0.6, 0.8, 0.7}, {1, 1, 1, 1}));
  const double error = std::sqrt(0.05 / 12);
  EXPECT_THAT(errors.classes().mean_probability, ElementsAre(DoubleNear(error, 1e-12), DoubleNear(error, 1e-12)));
  EXPECT_THAT(errors.classes().predictive_entropy, SizeIs(1));
  EXPECT_THAT(errors.classes().variation_ratio, SizeIs(1));
}

// Neighbours are alike, as of a chain that moves slowly: x' = .5 + .8 (x - .5) + noise. Four parts of two draws with
// means .55, .65, .45, .35 around .5: (.05^2 + .15^2 + .05^2 + .15^2) / 12. By single draws it would look as if it
// were .0431.
TEST(BatchMeans, UsesBlocksForDrawsThatResembleTheirNeighbours) {
  const std::vector<double> p = {0.52, 0.58, 0.66, 0.64, 0.48, 0.42, 0.36, 0.34};
  std::vector<PartialPrediction> parts = Parts(p, {2, 2, 2, 2});
  EXPECT_NEAR(BatchMeansErrors(parts).classes().mean_probability[0], std::sqrt(0.05 / 12), 1e-12);
  const double naive = BatchMeansErrors(Parts(p, {1, 1, 1, 1, 1, 1, 1, 1})).classes().mean_probability[0];
  EXPECT_LT(naive, 0.75 * std::sqrt(0.05 / 12));
}

// Nine draws: blocks of at least two, the odd one goes to the last. Of a mean over unequal blocks the jackknife is
// sum_b (m_b - m)^2 n_b / (n - n_b) / B.
TEST(BatchMeans, AllowsForBlocksOfUnequalLength) {
  const std::vector<double> p = {0.2, 0.4, 0.6, 0.8, 0.5, 0.7, 0.1, 0.3, 0.8};
  const double m = 4.4 / 9;
  const double expected = (std::pow(0.3 - m, 2) * 2 / 7 + std::pow(0.7 - m, 2) * 2 / 7 + std::pow(0.6 - m, 2) * 2 / 7 +
                           std::pow(0.4 - m, 2) * 3 / 6) /
                          4;
  const PredictiveScores errors = BatchMeansErrors(Parts(p, {1, 1, 1, 1, 2, 1, 1, 1}));
  EXPECT_NEAR(errors.classes().mean_probability[0], std::sqrt(expected), 1e-12);
}

TEST(BatchMeans, BothKindsOfAStepAreInOneBlock) {
  const std::vector<DrawKind> both = {DrawKind::kTheta, DrawKind::kThetaA};
  const PredictiveScores errors = BatchMeansErrors(Parts({0.5, 0.6, 0.8, 0.7}, {1, 1, 1, 1}, both));
  EXPECT_NEAR(errors.classes().mean_probability[0], std::sqrt(0.05 / 12), 1e-12)
      << "a second, equal kind tells nothing new";
  std::vector<PartialPrediction> torn = Parts({0.5, 0.6, 0.8, 0.7}, {1, 1, 1, 1}, both);
  torn.pop_back();
  EXPECT_FALSE(BatchMeansErrors(torn).any());
}

TEST(BatchMeans, IsUnknownOfLessThanFourBlocksAndKnownOfAnyFourDraws) {
  EXPECT_FALSE(BatchMeansErrors({}).any());
  EXPECT_FALSE(BatchMeansErrors(Parts({0.5, 0.6, 0.8}, {1, 1, 1})).any());
  std::vector<double> p;
  for (int64_t draws = 1; draws <= 300; ++draws) {
    p.push_back(0.5 + 0.3 * std::sin(static_cast<double>(draws)));
    std::vector<int64_t> lengths;
    for (const int64_t run : RunsOf(draws)) {
      for (const int64_t part : PartsOf(run)) lengths.push_back(part);
    }
    EXPECT_EQ(BatchMeansErrors(Parts(p, lengths)).any(), draws >= kMinBlocks) << draws;
  }
}

// The whole way: a job with one chain, through the router.
struct World {
  absl::StatusOr<Prediction> Predict(PredictQuery query, int64_t rows = 2) {
    std::optional<absl::StatusOr<Prediction>> result;
    router.Predict(std::move(query), testing::NumberedRows(rows), absl::Minutes(10),
                   [&](absl::StatusOr<Prediction> answer) { result = std::move(answer); });
    executor.RunFor(absl::Minutes(11));
    return result ? *result : absl::InternalError("never answered");
  }

  explicit World(int64_t draws) : catalog(&executor, {draws}, Classes{3}) {
    port.workers = {{"a", testing::FakeShardPort::Mood::kAnswers}, {"b", testing::FakeShardPort::Mood::kAnswers}};
  }

  FakeClock clock;
  ManualExecutor executor{&clock};
  testing::FakeDrawCatalog catalog;
  testing::FakeShardPort port{&executor, testing::ArbitraryProbabilities(3)};
  ShardQueue queue{&clock, &executor, &port};
  PredictRouter router{&clock, &executor, &catalog, &queue};
};

TEST(BatchMeans, OneChainsAnswerHasAnErrorAndIsStillOneWorkersWork) {
  World world(21);
  const absl::StatusOr<Prediction> answer = world.Predict({.kinds = {DrawKind::kTheta}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->draws_used, 21);
  EXPECT_THAT(world.port.sent, SizeIs(1));
  const testing::Probabilities p = testing::ArbitraryProbabilities(3);
  double mean = 0, squares = 0;
  for (int64_t draw = 0; draw < 21; ++draw) {
    const double value = p({"job-aaaaaa", 0}, DrawKind::kTheta, draw, 1)[2];
    mean += value / 21;
    squares += value * value / 21;
  }
  EXPECT_NEAR(answer->scores.classes().mean_probability[5], mean, 1e-14);
  ASSERT_THAT(answer->errors.classes().mean_probability, SizeIs(6));
  const double independent = std::sqrt((squares - mean * mean) / 20);  // as these draws are
  EXPECT_GT(answer->errors.classes().mean_probability[5], 0.3 * independent);
  EXPECT_LT(answer->errors.classes().mean_probability[5], 3 * independent);
}

TEST(BatchMeans, AnAnytimeAnswerHasTheErrorOfThePlainOneOverTheSameDraws) {
  for (const int64_t draws : {4, 7, 20}) {
    World world(draws);
    const absl::StatusOr<Prediction> plain = world.Predict({}), anytime = world.Predict({.anytime = true});
    ASSERT_TRUE(plain.ok() && anytime.ok());
    EXPECT_EQ(anytime->draws_used, draws);
    ASSERT_THAT(plain->errors.classes().mean_probability, SizeIs(6));
    EXPECT_EQ(anytime->errors.classes().mean_probability, plain->errors.classes().mean_probability) << draws;
    EXPECT_EQ(anytime->errors.classes().mutual_information, plain->errors.classes().mutual_information) << draws;
  }
}

TEST(BatchMeans, MembersAreInTheOrderOfTheirDrawsAllTheSame) {
  for (const bool anytime : {false, true}) {
    World world(11);
    const absl::StatusOr<Prediction> answer =
        world.Predict({.kinds = {DrawKind::kTheta}, .anytime = anytime, .members = true});
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_THAT(answer->members, SizeIs(1));
    ASSERT_THAT(answer->members[0].weights, SizeIs(11));
    const testing::Probabilities p = testing::ArbitraryProbabilities(3);
    for (int64_t draw = 0; draw < 11; ++draw) {
      EXPECT_EQ(answer->members[0].classes().probabilities[static_cast<size_t>(draw * 6)],
                static_cast<float>(p({"job-aaaaaa", 0}, DrawKind::kTheta, draw, 0)[0]));
    }
  }
}

TEST(BatchMeans, FewerThanFourDrawsAreNotCutAndHaveNone) {
  World world(3);
  const absl::StatusOr<Prediction> answer = world.Predict({});
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->errors.any());
  World unasked(20);
  const absl::StatusOr<Prediction> plain = unasked.Predict({.with_errors = false});
  ASSERT_TRUE(plain.ok());
  EXPECT_THAT(unasked.port.sent.front().request.chains, SizeIs(1)) << "nor is what nobody asks the error of";
}

TEST(BatchMeans, CorruptDrawsAreLeftOutOfTheBlocks) {
  World world(20);
  world.port.corrupt = {"0/19", "0/3"};
  const absl::StatusOr<Prediction> answer = world.Predict({});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->draws_used, 18);
  EXPECT_THAT(answer->errors.classes().mean_probability, SizeIs(6));
}

}  // namespace
}  // namespace chainfleet
