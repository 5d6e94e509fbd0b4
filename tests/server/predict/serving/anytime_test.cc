// Anytime calls: as many draws as fit into a deadline, by a fake clock and workers that take their time.
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/predict/serving/draw_selection.h"
#include "server/predict/serving/predict_router.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Mood = testing::FakeShardPort::Mood;

// Multiples of 1/64, whose sums are exact in any order.
std::vector<double> ExactProbabilities(const ChainId& chain, DrawKind kind, int64_t draw, int64_t row) {
  const auto part = (7 * draw + 3 * chain.index + 5 * row + (kind == DrawKind::kThetaA ? 11 : 0)) % 64;
  return {static_cast<double>(part) / 64, static_cast<double>(64 - part) / 64};
}

// Chains with 20, 9 and 2 draws of theta and theta_a over two workers.
struct World {
  World() {
    port.workers = {{"a", Mood::kAnswers}, {"b", Mood::kAnswers}};
    port.draw_time = absl::Milliseconds(100);
  }

  void Ask(absl::Duration timeout, int64_t min_draws = 0, int64_t rows = 3) {
    PredictQuery query{.draws = {.job = "job"}, .min_draws = min_draws, .anytime = true};
    began = clock.Monotonic();
    cancel = router.Predict(std::move(query), testing::NumberedRows(rows), timeout,
                            [this](absl::StatusOr<Prediction> answer) {
                              EXPECT_FALSE(result) << "answered twice";
                              result = std::move(answer);
                              answered = clock.Monotonic() - began;
                            });
  }
  absl::StatusOr<Prediction> Predict(absl::Duration timeout, int64_t min_draws = 0, int64_t rows = 3) {
    Ask(timeout, min_draws, rows);
    executor.RunFor(timeout + absl::Seconds(1));
    return result ? *result : absl::InternalError("never answered");
  }
  // A call without a deadline over the newest `count` draws of each chain.
  Prediction Plain(int64_t count, int64_t rows = 3) {
    World other;
    other.catalog.pinned.chains = DrawsOfWave(catalog.pinned.chains, 0, count);
    std::optional<absl::StatusOr<Prediction>> plain;
    other.router.Predict({}, testing::NumberedRows(rows), absl::Hours(1),
                         [&](absl::StatusOr<Prediction> answer) { plain = std::move(answer); });
    other.executor.RunFor(absl::Minutes(1));
    return plain->value();
  }

  FakeClock clock;
  ManualExecutor executor{&clock};
  testing::FakeDrawCatalog catalog{&executor, {20, 9, 2}, Classes{2}};
  testing::FakeShardPort port{&executor, ExactProbabilities};
  ShardQueue queue{&clock, &executor, &port};
  PredictRouter router{&clock, &executor, &catalog, &queue};
  std::optional<absl::StatusOr<Prediction>> result;
  std::function<void()> cancel;
  absl::Duration began, answered;  // the latter since the former
};

TEST(Anytime, AveragesAllDrawsIfThereIsTime) {
  World world;
  const absl::StatusOr<Prediction> answer = world.Predict(absl::Minutes(10));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->draws_used, 31);
  const Prediction plain = world.Plain(20);
  EXPECT_EQ(answer->scores.classes().mean_probability, plain.scores.classes().mean_probability);
  EXPECT_EQ(answer->scores.classes().variation_ratio, plain.scores.classes().variation_ratio);
  EXPECT_EQ(answer->errors.classes().mean_probability, plain.errors.classes().mean_probability);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(answer->scores.classes().expected_entropy[i], plain.scores.classes().expected_entropy[i], 1e-15);
  }
  EXPECT_LT(world.answered, absl::Minutes(1)) << "it does not wait for the deadline";
}

TEST(Anytime, AveragesTheNewestDrawsThatFitAndAnswersBeforeTheDeadline) {
  std::set<int64_t> counts;
  for (const int seconds : {1, 2, 3, 4}) {
    World world;
    const absl::StatusOr<Prediction> answer = world.Predict(absl::Seconds(seconds));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_LT(world.answered, absl::Seconds(seconds));
    EXPECT_LT(answer->draws_used, 31);
    EXPECT_EQ(answer->draws_in_version, 31);
    EXPECT_THAT(answer->errors.classes().mean_probability, SizeIs(6)) << "the error bar";
    counts.insert(answer->draws_used);
    // The newest `per_chain` draws of each chain.
    int64_t per_chain = 1;
    while (NumDraws(DrawsOfWave(world.catalog.pinned.chains, 0, per_chain)) < answer->draws_used) ++per_chain;
    const Prediction plain = world.Plain(per_chain);
    ASSERT_EQ(plain.draws_used, answer->draws_used);
    EXPECT_EQ(answer->scores.classes().mean_probability, plain.scores.classes().mean_probability) << seconds;
    EXPECT_EQ(answer->errors.classes().mean_probability, plain.errors.classes().mean_probability) << seconds;
  }
  EXPECT_GE(counts.size(), 3u) << "more time, more draws";
}

TEST(Anytime, TakesNoDrawTwiceAndGivesAChainToOneShardOfAWave) {
  World world;
  ASSERT_TRUE(world.Predict(absl::Minutes(10)).ok());
  std::map<ChainId, int64_t> draws;
  for (const auto& sent : world.port.sent) {
    for (const ChainDraws& chain : sent.request.chains) draws[chain.chain] += NumDraws(chain);
  }
  EXPECT_THAT(draws, SizeIs(3));
  for (const ChainDraws& chain : world.catalog.pinned.chains) EXPECT_EQ(draws[chain.chain], chain.num_draws);
}

TEST(Anytime, DropsAWaveThatDoesNotEndInTime) {
  World world;
  world.Ask(absl::Seconds(10));
  world.executor.RunFor(absl::Seconds(1));  // the waves of 1 and 2 are done
  const size_t sent = world.port.sent.size();
  world.port.workers["a"] = world.port.workers["b"] = Mood::kHangs;
  world.executor.RunFor(absl::Seconds(9));
  ASSERT_TRUE(world.result);
  ASSERT_TRUE(world.result->ok()) << world.result->status();
  EXPECT_GT(world.port.sent.size(), sent) << "a further wave was tried";
  EXPECT_GT((*world.result)->draws_used, 0);
  EXPECT_LT((*world.result)->draws_used, 31);
  EXPECT_EQ(world.port.num_open(), 0u) << "and cancelled";
  EXPECT_LE(world.answered, absl::Seconds(9.9)) << "with time for the way back";
}

TEST(Anytime, AnswersFromTheFirstWavesChainsThatCameInTime) {
  World world;
  world.port.workers["a"] = Mood::kHangs;
  world.Ask(absl::Seconds(5));
  world.executor.RunFor(absl::Seconds(1));
  world.port.workers["b"] = Mood::kHangs;  // from its first answer on
  world.executor.RunFor(absl::Seconds(4));
  ASSERT_TRUE(world.result);
  const absl::StatusOr<Prediction>& answer = *world.result;
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GE(answer->draws_used, 1);
  EXPECT_LT(answer->draws_used, 3);
}

TEST(Anytime, TheFirstWaveIsAskedElsewhereIfAWorkerIsSlow) {
  World world;
  world.port.workers["a"] = Mood::kHangs;
  const absl::StatusOr<Prediction> answer = world.Predict(absl::Seconds(5));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GE(answer->draws_used, 3) << "all chains";
}

TEST(Anytime, FurtherWavesMayTakeTheirTime) {
  World world;
  ASSERT_TRUE(world.Predict(absl::Seconds(5)).ok());
  std::map<ChainId, std::set<int64_t>> newest;
  for (const auto& sent : world.port.sent) {
    for (const ChainDraws& chain : sent.request.chains) {
      EXPECT_TRUE(newest[chain.chain].insert(chain.segments.back().first_index).second) << "a draw was asked for twice";
    }
  }
}

TEST(Anytime, NeverAnswersWithFewerThanMinDraws) {
  World world;
  const absl::StatusOr<Prediction> in_time = world.Predict(absl::Seconds(100), 31);
  ASSERT_TRUE(in_time.ok()) << in_time.status();
  EXPECT_EQ(in_time->draws_used, 31);
  World late;
  const absl::Status status = late.Predict(absl::Seconds(1), 31).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("of 31 draws were averaged, min_draws is 31"));
  World nothing;
  nothing.port.workers["a"] = nothing.port.workers["b"] = Mood::kHangs;
  EXPECT_EQ(nothing.Predict(absl::Seconds(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Anytime, GoesOnPastItsPaceWhileMinDrawsAreMissing) {
  // 3 s take 1, 2 and then a few draws of each chain; 28 draws need a wave that does not look as if it fitted.
  World world;
  world.port.draw_time = absl::Milliseconds(50);
  world.port.shard_time = absl::Milliseconds(200);
  const absl::StatusOr<Prediction> answer = world.Predict(absl::Seconds(4.5), 28);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GE(answer->draws_used, 28);
}

TEST(Anytime, CancelEndsItBetweenAndWithinWaves) {
  for (const auto after : {absl::ZeroDuration(), absl::Milliseconds(150), absl::Milliseconds(900)}) {
    World world;
    world.Ask(absl::Minutes(1));
    world.executor.RunFor(after);
    world.cancel();
    world.executor.RunUntilIdle();
    ASSERT_TRUE(world.result) << after;
    EXPECT_EQ(world.result->status().code(), absl::StatusCode::kCancelled);
    world.executor.RunFor(absl::Minutes(2));
    EXPECT_EQ(world.port.num_open(), 0u);
  }
}

TEST(Anytime, CutsManyRowsAlikeInEveryWave) {
  World world;
  world.port.draw_time = absl::Milliseconds(1);
  const absl::StatusOr<Prediction> answer = world.Predict(absl::Minutes(10), 0, 3000);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->num_rows, 3000);
  EXPECT_EQ(answer->draws_used, 31);
  EXPECT_EQ(answer->scores.classes().mean_probability, world.Plain(20, 3000).scores.classes().mean_probability);
}

TEST(Anytime, LeavesOutCorruptDrawsOfAnyWave) {
  World world;
  world.port.corrupt = {"0/19", "1/3"};  // the newest of chain 0, an old one of chain 1
  const absl::StatusOr<Prediction> answer = world.Predict(absl::Minutes(10));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->draws_used, 29);
}

TEST(Anytime, KeepsMembersInTheOrderOfTheirDraws) {
  World world;
  PredictQuery query{.draws = {.job = "job"}, .kinds = {DrawKind::kTheta}, .anytime = true, .members = true};
  world.router.Predict(std::move(query), testing::NumberedRows(2), absl::Minutes(10),
                       [&](absl::StatusOr<Prediction> answer) { world.result = std::move(answer); });
  world.executor.RunFor(absl::Minutes(1));
  ASSERT_TRUE(world.result && world.result->ok());
  const std::vector<Members>& members = (*world.result)->members;
  ASSERT_THAT(members, SizeIs(3));
  for (const Members& of : members) {
    const auto draws = static_cast<int64_t>(of.weights.size());
    EXPECT_EQ(draws, world.catalog.pinned.chains[static_cast<size_t>(of.chain.index)].num_draws);
    for (int64_t draw = 0; draw < draws; ++draw) {
      for (int64_t row = 0; row < 2; ++row) {
        EXPECT_EQ(of.classes().probabilities[static_cast<size_t>((draw * 2 + row) * 2)],
                  ExactProbabilities(of.chain, of.kind, draw, row)[0]);
      }
    }
  }
}

}  // namespace
}  // namespace chainfleet
