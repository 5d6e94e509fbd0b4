// Tests members, and quantiles of their mixture, through the router.
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "core/base/limits.h"
#include "core/domain/prediction_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/predict/serving/call_bounds.h"
#include "server/predict/serving/fan_out.h"
#include "server/predict/serving/predict_router.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct World {
  World(const std::vector<int64_t>& draws_of_chain, const Targets& targets, const testing::Probabilities& says,
        std::optional<uint64_t> seed = std::nullopt)
      : executor(&clock, seed), catalog(&executor, draws_of_chain, targets), port(&executor, says) {
    port.workers = {{"a", testing::FakeShardPort::Mood::kAnswers}, {"b", testing::FakeShardPort::Mood::kAnswers}};
  }

  absl::StatusOr<Prediction> Predict(PredictQuery query, int64_t rows) {
    std::optional<absl::StatusOr<Prediction>> result;
    router.Predict(std::move(query), testing::NumberedRows(rows), absl::Seconds(60),
                   [&](absl::StatusOr<Prediction> answer) { result = std::move(answer); });
    executor.RunFor(absl::Seconds(61));
    return result ? *result : absl::InternalError("never answered");
  }

  FakeClock clock;
  ManualExecutor executor;
  testing::FakeDrawCatalog catalog;
  testing::FakeShardPort port;
  ShardQueue queue{&clock, &executor, &port};
  PredictRouter router{&clock, &executor, &catalog, &queue};
};

// Mean: chain, draw and row as digits; variance 1 or 4.
std::vector<double> Moments(const ChainId& chain, DrawKind kind, int64_t draw, int64_t row) {
  return {static_cast<double>(100 * chain.index + 10 * draw + row), kind == DrawKind::kTheta ? 1.0 : 4.0};
}

TEST(Members, AreThoseOfEachDrawByChainAndKindWhateverThePlacement) {
  for (const uint64_t seed : {1, 2, 3}) {
    const testing::Probabilities says = testing::ArbitraryProbabilities(3);
    World world({2, 3}, Classes{3}, says, seed);
    const absl::StatusOr<Prediction> answer = world.Predict({.members = true}, 1500);  // several blocks
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_THAT(answer->members, SizeIs(4));
    for (size_t i = 0; i < 4; ++i) {
      const Members& members = answer->members[i];
      EXPECT_EQ(members.chain.index, static_cast<int32_t>(i / 2));
      EXPECT_EQ(members.kind, i % 2 == 0 ? DrawKind::kTheta : DrawKind::kThetaA);
      const size_t draws = i < 2 ? 2 : 3;
      ASSERT_THAT(members.weights, SizeIs(draws));
      ASSERT_THAT(members.classes().probabilities, SizeIs(draws * 1500 * 3));
      for (const size_t row : {0, 1023, 1024, 1499}) {
        for (size_t draw = 0; draw < draws; ++draw) {
          EXPECT_EQ(members.classes().probabilities[(draw * 1500 + row) * 3 + 2],
                    static_cast<float>(
                        says(members.chain, members.kind, static_cast<int64_t>(draw), static_cast<int64_t>(row))[2]));
        }
      }
    }
    EXPECT_THAT(answer->quantiles, IsEmpty());
  }
}

TEST(Members, AreNotSentUnlessAsked) {
  World world({2, 3}, Classes{3}, testing::ArbitraryProbabilities(3));
  const absl::StatusOr<Prediction> answer = world.Predict({}, 5);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->members, IsEmpty());
  for (const auto& sent : world.port.sent) EXPECT_FALSE(sent.request.members);
}

TEST(Members, HaveMeansAndVariancesForNumbers) {
  World world({2}, Numbers(), Moments);
  const absl::StatusOr<Prediction> answer = world.Predict({.kinds = {DrawKind::kThetaA}, .members = true}, 2);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_THAT(answer->members, SizeIs(1));
  EXPECT_THAT(answer->members[0].numbers().mean, ElementsAre(0, 1, 10, 11));
  EXPECT_THAT(answer->members[0].numbers().variance, ElementsAre(4, 4, 4, 4));
}

void ExpectTwice(const auto& gradients, const auto& values) {
  ASSERT_THAT(gradients, SizeIs(values.size()));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(gradients[i], 2 * values[i], 1e-12 * std::abs(values[i]));
}

TEST(Gradients, AreAveragedOverDrawsInEveryKindOfCall) {
  for (const bool anytime : {false, true}) {
    for (const std::vector<int64_t>& draws_of_chain : {std::vector<int64_t>{2, 3}, {40}}) {  // one chain has parts
      World world(draws_of_chain, Classes{3}, testing::ArbitraryProbabilities(3));
      const auto answer = world.Predict({.anytime = anytime, .members = true, .gradients = true}, 50);
      ASSERT_TRUE(answer.ok()) << answer.status();
      ExpectTwice(answer->mean_gradient, std::get<ClassScores>(answer->scores.of).mean_probability);
      for (const Members& members : answer->members) ExpectTwice(members.gradients, members.classes().probabilities);
    }
  }
  World numbers({2, 3}, Numbers(), Moments);
  const auto answer = numbers.Predict({.gradients = true}, 1500);  // several blocks
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->members, IsEmpty());
  ExpectTwice(answer->mean_gradient, std::get<NumberScores>(answer->scores.of).mean);
}

TEST(Gradients, AreNotSentUnlessAsked) {
  World world({2}, Classes{3}, testing::ArbitraryProbabilities(3));
  const auto answer = world.Predict({.members = true}, 5);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->mean_gradient, IsEmpty());
  for (const auto& sent : world.port.sent) EXPECT_FALSE(sent.request.gradients);
}

TEST(Gradients, AreRefusedBeforeTheyOutgrowAReplyOrWhatACallKeeps) {
  World world({8}, Classes{3}, testing::ArbitraryProbabilities(3));
  auto plan = std::make_shared<PredictPlan>(*world.catalog.pinned.plan);
  plan->targets = Classes{10};
  plan->input_shape = {3, 32, 32};  // 245,760 bytes a row
  EXPECT_TRUE(CheckGradientBytes(*plan, 63).ok());
  EXPECT_THAT(std::string(CheckGradientBytes(*plan, 64).message()), HasSubstr("ask for 63 rows at a time"));
  world.catalog.pinned.plan = plan;
  EXPECT_TRUE(CheckMemberBytes(world.catalog.pinned, 2, 7, true, true).ok()) << "16 networks: 2 MB a row";
  EXPECT_FALSE(CheckMemberBytes(world.catalog.pinned, 2, 8, true, true).ok());
  EXPECT_TRUE(CheckSumBytes(world.catalog.pinned, 2, 60, 9, true).ok());
  EXPECT_FALSE(CheckSumBytes(world.catalog.pinned, 2, 61, 9, true).ok());
}

TEST(Quantiles, EqualThoseOfTheGaussianOfASingleDraw) {
  World world({1}, Numbers(), Moments);
  const absl::StatusOr<Prediction> answer =
      world.Predict({.kinds = {DrawKind::kThetaA}, .quantiles = {0.025, 0.5, 0.975}}, 2);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->members, IsEmpty());
  const std::vector<double> wanted = {-3.919927969080108, 0, 3.919927969080108,
                                      -2.919927969080108, 1, 4.919927969080108};
  ASSERT_THAT(answer->quantiles, SizeIs(6));
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(answer->quantiles[i], wanted[i], 1e-9) << i;
}

// theta and theta_a of two draws: 1/4 N(m, 1) + 1/4 N(m, 4) + 1/4 N(m + 10, 1) + 1/4 N(m + 10, 4), symmetric at m + 5.
TEST(Quantiles, AreSymmetricWhereTheMixtureIs) {
  World world({2}, Numbers(), Moments);
  const absl::StatusOr<Prediction> answer = world.Predict({.quantiles = {0.1, 0.5, 0.9}}, 1500);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_THAT(answer->quantiles, SizeIs(4500));
  for (size_t row = 0; row < 1500; ++row) {
    const double center = static_cast<double>(row) + 5;
    EXPECT_NEAR(answer->quantiles[3 * row + 1], center, 1e-6);
    EXPECT_NEAR(answer->quantiles[3 * row] + answer->quantiles[3 * row + 2], 2 * center, 1e-8);
    const auto normal = [](double z) { return std::erfc(-z / std::sqrt(2)) / 2; };
    const double x = answer->quantiles[3 * row] - static_cast<double>(row);
    EXPECT_NEAR((normal(x) + normal(x / 2) + normal(x - 10) + normal((x - 10) / 2)) / 4, 0.1, 1e-10);
  }
}

TEST(Quantiles, AreRefusedForClassesAndForLevelsThatAreNone) {
  World classes({2}, Classes{3}, testing::ArbitraryProbabilities(3));
  const absl::Status of_classes = classes.Predict({.quantiles = {0.5}}, 1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(of_classes));
  EXPECT_THAT(std::string(of_classes.message()), HasSubstr("quantiles are of jobs that learn numbers"));
  for (const std::vector<double>& levels : {std::vector<double>{0.5, 0},
                                            {1},
                                            {-0.1},
                                            {95},
                                            {std::nan("")},
                                            std::vector<double>(limits::kMaxQuantiles + 1, 0.5)}) {
    World world({2}, Numbers(), Moments);
    EXPECT_TRUE(absl::IsInvalidArgument(world.Predict({.quantiles = levels}, 1).status()));
    EXPECT_THAT(world.port.sent, IsEmpty());
  }
}

TEST(Members, AreRefusedBeforeTheyOutgrowAReplyAndTheErrorSaysWhatFits) {
  World world({8}, Classes{3}, testing::ArbitraryProbabilities(3));
  auto plan = std::make_shared<PredictPlan>(*world.catalog.pinned.plan);
  plan->targets = Classes{1000};  // 16 networks: 64 kB a row
  world.catalog.pinned.plan = plan;
  const absl::Status status = world.Predict({.members = true}, 1000).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("at most 163 rows at a time"), HasSubstr("max_draws")));
  EXPECT_THAT(world.port.sent, IsEmpty());
  EXPECT_TRUE(CheckMemberBytes(world.catalog.pinned, 2, 163, true).ok());
  EXPECT_FALSE(CheckMemberBytes(world.catalog.pinned, 2, 164, true).ok());
  EXPECT_TRUE(CheckMemberBytes(world.catalog.pinned, 2, 4000, false).ok()) << "what is not sent on may be more";
  EXPECT_FALSE(CheckMemberBytes(world.catalog.pinned, 2, 4200, false).ok());
}

// Covers calls with members, and anytime calls, which keep sums between their waves.
TEST(PredictRouter, BoundsWhatAllCallsKeepTogether) {
  for (const bool anytime : {false, true}) {
    World world({8}, Classes{3}, testing::ArbitraryProbabilities(3));
    const PredictQuery query{.anytime = anytime, .members = !anytime};
    const absl::StatusOr<int64_t> bytes =
        anytime ? CheckSumBytes(world.catalog.pinned, 2, 10, 9) : CheckMemberBytes(world.catalog.pinned, 2, 10, true);
    ASSERT_TRUE(bytes.ok());
    PredictRouter router(&world.clock, &world.executor, &world.catalog, &world.queue, nullptr, *bytes * 3 / 2);
    std::vector<absl::Status> ends;
    const auto ask = [&] {
      auto cancel = router.Predict(query, testing::NumberedRows(10), absl::Seconds(60),
                                   [&](const auto& answer) { ends.push_back(answer.status()); });
      world.executor.RunUntilIdle();
      return cancel;
    };
    for (auto& [worker, mood] : world.port.workers) mood = testing::FakeShardPort::Mood::kHangs;
    const auto cancel = ask();
    EXPECT_THAT(ends, IsEmpty());
    ask();
    ASSERT_THAT(ends, SizeIs(1));
    EXPECT_EQ(ReasonOf(ends[0]), "QUEUE_FULL");
    EXPECT_EQ(BoundOf(ends[0]), "prediction_kept_bytes");
    cancel();
    for (auto& [worker, mood] : world.port.workers) mood = testing::FakeShardPort::Mood::kAnswers;
    world.executor.RunUntilIdle();
    ask();
    world.executor.RunFor(absl::Seconds(61));
    ASSERT_THAT(ends, SizeIs(3));
    EXPECT_TRUE(ends[2].ok()) << ends[2];
  }
}

TEST(RowsPerBlock, CountsThePassesOfGradients) {
  World world({32}, Classes{7}, testing::ArbitraryProbabilities(7));
  EXPECT_EQ(RowsPerBlock(world.catalog.pinned, 2, 1), 512);
  EXPECT_EQ(RowsPerBlock(world.catalog.pinned, 2, 1, false, 1, true), 51) << "10 passes for each";
}

TEST(RowsPerBlock, StaysBelowAShardResultWithMembers) {
  World world({4096}, Classes{3}, testing::ArbitraryProbabilities(3));
  EXPECT_EQ(RowsPerBlock(world.catalog.pinned, 2, 1, false), limits::kMinShardRows);
  auto plan = std::make_shared<PredictPlan>(*world.catalog.pinned.plan);
  plan->targets = Classes{1000};  // 8192 networks: 32 MB a row
  world.catalog.pinned.plan = plan;
  EXPECT_EQ(RowsPerBlock(world.catalog.pinned, 2, 1, true), 4);
}

TEST(CheckSumBytes, BoundsWhatACallKeeps) {
  World world(std::vector<int64_t>(100, 1), Classes{10}, testing::ArbitraryProbabilities(10));
  EXPECT_TRUE(CheckSumBytes(world.catalog.pinned, 2, 5000).ok());
  const absl::Status status = CheckSumBytes(world.catalog.pinned, 2, 6000).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most 5412 rows"));
}

// [S = 2, n, K = 2]: draw, row and class as digits.
Members Digits(int32_t chain, int64_t first_row, int64_t rows) {
  ClassMembers digits;
  for (int64_t draw = 0; draw < 2; ++draw) {
    for (int64_t row = first_row; row < first_row + rows; ++row) {
      for (int64_t k = 0; k < 2; ++k) digits.probabilities.push_back(static_cast<float>(100 * draw + 10 * row + k));
    }
  }
  return {.chain = {"j", chain}, .kind = DrawKind::kTheta, .weights = {1, 2}, .outputs = digits};
}

TEST(AppendRows, PutsRowsOfMembersBehindEachOtherWithinEachDraw) {
  Prediction whole{.draws_used = 1,
                   .num_rows = 2,
                   .targets = Classes{2},
                   .quantiles = {1, 2},
                   .quantile_errors = {0.1, 0.2},
                   .members = {Digits(0, 0, 2), Digits(1, 0, 2)}};
  const Prediction block{.draws_used = 1,
                         .num_rows = 1,
                         .targets = Classes{2},
                         .quantiles = {3},
                         .quantile_errors = {0.3},
                         .members = {Digits(0, 2, 1)}};
  AppendRows(block, &whole);
  EXPECT_THAT(whole.quantiles, ElementsAre(1, 2, 3));
  EXPECT_THAT(whole.quantile_errors, ElementsAre(0.1, 0.2, 0.3));
  ASSERT_THAT(whole.members, SizeIs(1)) << "of chain 1 some rows are missing";
  EXPECT_EQ(whole.members[0].classes().probabilities, Digits(0, 0, 3).classes().probabilities);
  AppendRows({.draws_used = 1, .num_rows = 1, .targets = Classes{2}, .quantiles = {4}}, &whole);
  EXPECT_THAT(whole.quantile_errors, IsEmpty()) << "of some rows they are unknown";
}

}  // namespace
}  // namespace chainfleet
