#include "server/predict/serving/predict_router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Mood = testing::FakeShardPort::Mood;

struct World {
  explicit World(const std::vector<int64_t>& draws_of_chain = {2, 3, 1, 2}, std::optional<uint64_t> seed = std::nullopt,
                 const testing::Probabilities& probabilities = testing::ArbitraryProbabilities(3))
      : executor(&clock, seed),
        catalog(&executor, draws_of_chain, Classes{3}),
        port(&executor, probabilities),
        queue(&clock, &executor, &port),
        router(&clock, &executor, &catalog, &queue) {
    port.workers = {{"a", Mood::kAnswers}, {"b", Mood::kAnswers}};
  }

  void Ask(int64_t rows, int64_t min_draws = 0, std::vector<DrawKind> kinds = {}) {
    cancel = router.Predict({{"job", 0, 0, false}, std::move(kinds), min_draws}, testing::NumberedRows(rows), timeout,
                            [this](absl::StatusOr<Prediction> r) { result = std::move(r); });
  }
  absl::StatusOr<Prediction> Predict(int64_t rows, int64_t min_draws = 0, std::vector<DrawKind> kinds = {}) {
    result.reset();
    Ask(rows, min_draws, std::move(kinds));
    executor.RunFor(absl::Seconds(61));
    return result ? *result : absl::InternalError("never answered");
  }

  absl::Duration timeout = absl::Seconds(60);
  FakeClock clock;
  ManualExecutor executor;
  testing::FakeDrawCatalog catalog;
  testing::FakeShardPort port;
  ShardQueue queue;
  PredictRouter router;
  std::optional<absl::StatusOr<Prediction>> result;
  std::function<void()> cancel;
};

TEST(PredictRouter, AveragesAllDrawsOfTheVersion) {
  World world;
  const absl::StatusOr<Prediction> answer = world.Predict(5);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->job, "job-aaaaaa");
  EXPECT_EQ(answer->version, 3);
  EXPECT_EQ(answer->draws_used, 8);
  EXPECT_EQ(answer->draws_in_version, 8);
  const testing::Probabilities p = testing::ArbitraryProbabilities(3);
  for (int64_t row = 0; row < 5; ++row) {
    double sum = 0;
    for (const ChainDraws& chain : world.catalog.pinned.chains) {
      for (int64_t draw = 0; draw < chain.num_draws; ++draw) {
        sum += p(chain.chain, DrawKind::kTheta, draw, row)[1] + p(chain.chain, DrawKind::kThetaA, draw, row)[1];
      }
    }
    EXPECT_NEAR(answer->scores.classes().mean_probability[static_cast<size_t>(row * 3 + 1)], sum / 16, 1e-14);
  }
  EXPECT_THAT(answer->scores.classes().mutual_information, SizeIs(5));
  EXPECT_THAT(answer->errors.classes().mean_probability, SizeIs(15));
}

// One chain says NaN of row 1: its scores are NaN, with their errors, and the other rows stay what they are.
TEST(PredictRouter, AnswersNaNForARowOfWhichADrawSaysNaN) {
  const testing::Probabilities fine = testing::ArbitraryProbabilities(3);
  const auto broken = [fine](const ChainId& chain, DrawKind kind, int64_t draw, int64_t row) {
    if (chain.index == 1 && row == 1) return std::vector<double>{0.2, 0.3, std::nan("")};
    return fine(chain, kind, draw, row);
  };
  World whole({2, 3}), world({2, 3}, std::nullopt, broken);
  const absl::StatusOr<Prediction> expected = whole.Predict(3), answer = world.Predict(3);
  ASSERT_TRUE(answer.ok()) << answer.status();
  for (const auto field :
       {&ClassScores::max_probability, &ClassScores::predictive_entropy, &ClassScores::mutual_information}) {
    EXPECT_TRUE(std::isnan((answer->scores.classes().*field)[1]));
    EXPECT_TRUE(std::isnan((answer->errors.classes().*field)[1]));
    EXPECT_EQ((answer->scores.classes().*field)[0], (expected->scores.classes().*field)[0]);
    EXPECT_EQ((answer->errors.classes().*field)[2], (expected->errors.classes().*field)[2]);
  }
  EXPECT_TRUE(std::isnan(answer->scores.classes().mean_probability[5]));
}

TEST(PredictRouter, NeverSplitsAChainOfARequestAndUsesAllWorkers) {
  World world;
  ASSERT_TRUE(world.Predict(5).ok());
  std::set<ChainId> seen;
  std::set<std::string> used;
  for (const auto& sent : world.port.sent) {
    used.insert(sent.worker);
    for (const ChainDraws& chain : sent.request.chains) EXPECT_TRUE(seen.insert(chain.chain).second);
  }
  EXPECT_THAT(seen, SizeIs(4));
  EXPECT_THAT(used, SizeIs(2));
}

TEST(PredictRouter, GivesTheSameBitsForEveryPlacementAndOrder) {
  World first;
  const absl::StatusOr<Prediction> expected = first.Predict(3000);
  ASSERT_TRUE(expected.ok());
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    World world({2, 3, 1, 2}, seed);
    world.port.workers = {};
    for (uint64_t w = 0; w < seed; ++w) world.port.workers["w" + std::to_string(w)] = Mood::kAnswers;
    const absl::StatusOr<Prediction> answer = world.Predict(3000);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->scores.classes().mean_probability, expected->scores.classes().mean_probability)
        << "seed " << seed;
    EXPECT_EQ(answer->scores.classes().expected_entropy, expected->scores.classes().expected_entropy);
    EXPECT_EQ(answer->errors.classes().mean_probability, expected->errors.classes().mean_probability);
  }
}

TEST(PredictRouter, CutsManyRowsIntoBlocksWithinTheBoundOfAWorker) {
  World world;
  const absl::StatusOr<Prediction> answer = world.Predict(5000);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->num_rows, 5000);
  EXPECT_THAT(answer->scores.classes().mean_probability, SizeIs(15000));
  EXPECT_THAT(world.port.sent, SizeIs(2 * 5));
  EXPECT_LE(world.port.most_in_flight, limits::kMaxShardsInFlightPerWorker);
}

TEST(PredictRouter, ManyCallsStayWithinTheBoundOfAWorker) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}, {"b", Mood::kHangs}};
  int answered = 0;
  for (int i = 0; i < 50; ++i) {
    world.router.Predict({}, testing::NumberedRows(2), absl::Seconds(60),
                         [&](const absl::StatusOr<Prediction>& r) { answered += r.ok(); });
  }
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.port.sent, SizeIs(2 * limits::kMaxShardsInFlightPerWorker));
  EXPECT_EQ(world.port.most_in_flight, limits::kMaxShardsInFlightPerWorker);
  world.port.workers = {{"a", Mood::kAnswers}, {"b", Mood::kAnswers}};
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  EXPECT_EQ(answered, 50);
  EXPECT_EQ(world.port.most_in_flight, limits::kMaxShardsInFlightPerWorker);
}

TEST(PredictRouter, RefusesCallsWhenTooManyShardsWait) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  int refused = 0;
  for (size_t i = 0; i < limits::kMaxWaitingShards + 10; ++i) {
    world.router.Predict({}, testing::NumberedRows(1), absl::Seconds(60),
                         [&](const absl::StatusOr<Prediction>& r) { refused += ReasonOf(r.status()) == "QUEUE_FULL"; });
  }
  world.executor.RunUntilIdle();
  EXPECT_EQ(refused, 10 - limits::kMaxShardsInFlightPerWorker);
}

TEST(PredictRouter, UsesOnlyTheKindsAsked) {
  // theta says class 0, theta_a class 1: the mixture is half of each.
  const auto one_sided = [](const ChainId&, DrawKind kind, int64_t, int64_t) {
    return kind == DrawKind::kTheta ? std::vector<double>{1, 0, 0} : std::vector<double>{0, 1, 0};
  };
  World world({2, 1}, std::nullopt, one_sided);
  EXPECT_THAT(world.Predict(1, 0, {DrawKind::kTheta})->scores.classes().mean_probability, ElementsAre(1, 0, 0));
  EXPECT_THAT(world.Predict(1, 0, {DrawKind::kThetaA, DrawKind::kThetaA})->scores.classes().mean_probability,
              ElementsAre(0, 1, 0));
  EXPECT_THAT(world.Predict(1)->scores.classes().mean_probability, ElementsAre(0.5, 0.5, 0));
  EXPECT_EQ(world.Predict(1)->draws_used, 3);
  world.catalog.pinned.kinds = {DrawKind::kTheta};
  const absl::Status status = world.Predict(1, 0, {DrawKind::kThetaA}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("keeps no theta_a"), HasSubstr("its kinds are theta")));
}

TEST(PredictRouter, SendsALostShardToAnotherWorker) {
  for (const Mood mood : {Mood::kLosesShards, Mood::kIsFull}) {
    World world;
    world.port.workers["a"] = mood;
    const absl::StatusOr<Prediction> answer = world.Predict(5);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->draws_used, 8);
    EXPECT_THAT(world.port.sent, SizeIs(3));
    std::set<uint64_t> ids;
    for (const auto& sent : world.port.sent) ids.insert(sent.request.shard_id);
    EXPECT_THAT(ids, SizeIs(3)) << "each attempt has an id of its own";
  }
}

TEST(PredictRouter, SendsShardsOfABrokenStreamToAnotherWorker) {
  World world;
  world.port.workers["a"] = Mood::kHangs;
  world.Ask(5);
  world.executor.RunUntilIdle();
  ASSERT_FALSE(world.result);
  world.port.Break("a");
  world.executor.RunUntilIdle();
  ASSERT_TRUE(world.result && world.result->ok());
  EXPECT_EQ((*world.result)->draws_used, 8);
}

TEST(PredictRouter, GivesUpAfterSomeAttempts) {
  World world;
  world.port.workers = {{"a", Mood::kLosesShards}};
  const absl::Status status = world.Predict(5).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(world.port.sent, SizeIs(limits::kShardAttempts));
}

TEST(PredictRouter, SaysSoWhenNoWorkerServes) {
  World world;
  world.port.workers.clear();
  const absl::Status status = world.Predict(5).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(status), "NO_SERVING_WORKER");
}

TEST(PredictRouter, NonsenseOfOneWorkerChangesNoBitOfTheAnswer) {
  World healthy;
  const absl::StatusOr<Prediction> expected = healthy.Predict(3000);
  ASSERT_TRUE(expected.ok()) << expected.status();
  World world;
  world.port.workers["b"] = Mood::kSendsNonsense;
  const absl::StatusOr<Prediction> answer = world.Predict(3000);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->draws_used, expected->draws_used);
  EXPECT_EQ(answer->scores.classes().mean_probability, expected->scores.classes().mean_probability);
  EXPECT_EQ(answer->errors.classes().mean_probability, expected->errors.classes().mean_probability);
  const auto asked = std::ranges::count(world.port.sent, "b", &testing::FakeShardPort::Sent::worker);
  EXPECT_LE(asked, static_cast<int64_t>(limits::kRowBlocksInFlight)) << "what it had before it was known";
}

TEST(PredictRouter, NonsenseOfAllWorkersEndsTheCallAndNamesNone) {
  World world;
  world.port.workers = {{"worker-1", Mood::kSendsNonsense}, {"worker-2", Mood::kSendsNonsense}};
  world.Ask(5);
  world.executor.RunUntilIdle();
  ASSERT_TRUE(world.result) << "without a pause";
  const absl::Status& status = world.result->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReasonOf(status), "BAD_SHARD_RESULT");
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("no worker gave an answer"), Not(HasSubstr("worker-"))));
  EXPECT_LE(world.port.sent.size(), 4u) << "two shards, each worker once";
}

TEST(PredictRouter, EndsWithTheFirstFailureWhenAllDrawsAreNeeded) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}, {"b", Mood::kRefuses}};
  world.Ask(5);
  world.executor.RunUntilIdle();
  ASSERT_TRUE(world.result);
  EXPECT_TRUE(absl::IsInvalidArgument(world.result->status())) << world.result->status();
  EXPECT_THAT(world.port.cancelled, SizeIs(1));
}

TEST(PredictRouter, ASlowWorkersShardIsAnsweredElsewhereWithinTheDeadline) {
  World world;
  world.timeout = absl::Seconds(6);
  world.port.workers["a"] = Mood::kHangs;
  world.Ask(5);
  world.executor.RunFor(absl::Seconds(2) - absl::Milliseconds(1));
  EXPECT_FALSE(world.result);
  world.executor.RunFor(absl::Milliseconds(1));
  ASSERT_TRUE(world.result);
  ASSERT_TRUE(world.result->ok()) << world.result->status();
  EXPECT_EQ((*world.result)->draws_used, 8);
}

TEST(PredictRouter, EndsAtTheDeadlineAndCancelsItsShards) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}, {"b", Mood::kHangs}};
  world.Ask(5);
  world.executor.RunFor(world.timeout - absl::Seconds(1));
  EXPECT_FALSE(world.result);
  world.executor.RunFor(absl::Seconds(1));
  ASSERT_TRUE(world.result);
  EXPECT_EQ(world.result->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(world.port.cancelled, SizeIs(2));
  EXPECT_EQ(world.port.num_open(), 0u);
}

TEST(PredictRouter, EndsAtTheDeadlineWhileDrawsAreLookedUp) {
  World world;
  world.catalog.answers = false;
  EXPECT_EQ(world.Predict(5).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(PredictRouter, AnswersAtTheDeadlineWithAtLeastMinDraws) {
  for (const int64_t min_draws : {2, 8}) {
    World world;
    world.port.workers["a"] = Mood::kHangs;
    world.Ask(5, min_draws);
    world.executor.RunUntilIdle();
    world.port.workers["b"] = Mood::kHangs;  // from its first answer on
    world.executor.RunFor(world.timeout);
    ASSERT_TRUE(world.result);
    if (min_draws == 8) {
      EXPECT_EQ(world.result->status().code(), absl::StatusCode::kDeadlineExceeded);
      EXPECT_THAT(std::string(world.result->status().message()), HasSubstr("min_draws is 8"));
    } else {
      ASSERT_TRUE(world.result->ok()) << world.result->status();
      EXPECT_GE((*world.result)->draws_used, 2);
      EXPECT_LT((*world.result)->draws_used, 8);
      EXPECT_EQ((*world.result)->draws_in_version, 8);
    }
  }
}

TEST(PredictRouter, AChainWithAWeightMayNotBeMissing) {
  for (const int64_t min_draws : {0, 1}) {
    World world;
    world.port.workers["a"] = Mood::kHangs;
    PredictQuery query{.draws = {.job = "job", .shares = {{0, 0.1}, {1, 0.1}, {2, 0.1}, {3, 0.7}}},
                       .min_draws = min_draws};
    world.router.Predict(std::move(query), testing::NumberedRows(5), world.timeout,
                         [&](absl::StatusOr<Prediction> r) { world.result = std::move(r); });
    world.executor.RunUntilIdle();
    if (min_draws > 0) world.port.workers["b"] = Mood::kHangs;  // from its first answer on
    world.executor.RunFor(world.timeout);
    ASSERT_TRUE(world.result);
    EXPECT_EQ(ReasonOf(world.result->status()), min_draws > 0 ? "TOO_FEW_DRAWS" : "") << world.result->status();
  }
}

TEST(PredictRouter, RefusesMinDrawsAboveTheVersionAtOnce) {
  World world;
  const absl::Status status = world.Predict(5, 9).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "TOO_FEW_DRAWS");
  EXPECT_THAT(world.port.sent, IsEmpty());
}

TEST(PredictRouter, CancelledCallsCancelTheirShards) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}, {"b", Mood::kHangs}};
  world.Ask(5, 1);
  world.executor.RunUntilIdle();
  world.cancel();
  world.executor.RunUntilIdle();
  ASSERT_TRUE(world.result);
  EXPECT_EQ(world.result->status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(world.port.cancelled, SizeIs(2));
  world.cancel();
  world.executor.RunUntilIdle();
}

TEST(PredictRouter, LeavesOutCorruptObjectsAndReportsThem) {
  World world;
  world.port.corrupt = {"1/2"};
  const absl::StatusOr<Prediction> answer = world.Predict(5);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->draws_used, 7);
  EXPECT_EQ(answer->draws_in_version, 8);
  EXPECT_THAT(world.catalog.corrupt, ElementsAre("1/2"));
}

TEST(PredictRouter, FailsWhenEveryDrawIsCorrupt) {
  World world({1, 1});
  world.port.corrupt = {"0/0", "1/0"};
  EXPECT_EQ(ReasonOf(world.Predict(5).status()), "TOO_FEW_DRAWS");
}

TEST(PredictRouter, RefusesInputsThatDoNotFitWithBothShapes) {
  World world;
  const auto ask = [&](std::vector<int64_t> shape, size_t bytes) {
    auto inputs = std::make_shared<InputTensor>();
    inputs->shape = std::move(shape);
    inputs->bytes = std::string(bytes, '\0');
    absl::Status status;
    world.router.Predict({}, inputs, absl::Seconds(1),
                         [&](const absl::StatusOr<Prediction>& r) { status = r.status(); });
    world.executor.RunFor(absl::Seconds(2));
    return status;
  };
  for (const absl::Status& status : {ask({2, 28, 28}, 6272), ask({}, 4), ask({0, 1}, 0), ask({2, 1}, 4), ask({2, 1}, 9),
                                     ask({int64_t{1} << 62, 1}, 0)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  EXPECT_THAT(std::string(ask({2, 28, 28}, 6272).message()), AllOf(HasSubstr("[2, 28, 28]"), HasSubstr("[n, 1]")));
  EXPECT_THAT(world.port.sent, IsEmpty());
}

TEST(PredictRouter, RefusesInputsThatAreNotFiniteAndNamesTheRow) {
  World world;
  const float values[] = {0, 1, std::numeric_limits<float>::quiet_NaN()};
  auto inputs = std::make_shared<InputTensor>();
  inputs->shape = {3, 1};
  inputs->bytes.assign(reinterpret_cast<const char*>(values), sizeof values);
  absl::Status status;
  world.router.Predict({}, inputs, absl::Seconds(1), [&](const absl::StatusOr<Prediction>& r) { status = r.status(); });
  world.executor.RunFor(absl::Seconds(2));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("row 2 of the inputs holds nan"));
}

TEST(PredictRouter, PassesOnWhatTheCatalogSays) {
  World world;
  world.catalog.pin_status = WithReason(absl::FailedPreconditionError("no draw yet"), "NO_DRAWS");
  EXPECT_EQ(ReasonOf(world.Predict(5).status()), "NO_DRAWS");
}

}  // namespace
}  // namespace chainfleet
