#include "server/predict/serving/batcher.h"

#include <array>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "core/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using Answer = std::optional<absl::StatusOr<Prediction>>;
using Mood = testing::FakeShardPort::Mood;

std::shared_ptr<const InputTensor> Rows(const std::vector<float>& values) {
  auto inputs = std::make_shared<InputTensor>();
  inputs->shape = {static_cast<int64_t>(values.size()), 1};
  inputs->bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return inputs;
}

struct World {
  explicit World(BatchLimits limits = {}, PredictObserver* observer = nullptr)
      : executor(&clock),
        catalog(&executor, {2, 3}, Classes{3}),
        port(&executor, testing::ArbitraryProbabilities(3)),
        queue(&clock, &executor, &port),
        router(&clock, &executor, &catalog, &queue, observer),
        batcher(&clock, &executor, &router, &statistics, limits, observer) {
    port.workers = {{"a", Mood::kAnswers}};
  }

  std::function<void()> Ask(const std::shared_ptr<const InputTensor>& inputs, Answer* answer,
                            absl::Duration timeout = absl::Seconds(60),
                            PredictPriority priority = PredictPriority::kNormal,
                            PredictQuery query = {{"job", 0, 0, false}, {}, 0}) {
    return batcher.Predict(std::move(query), inputs, timeout, priority, [answer](absl::StatusOr<Prediction> r) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = std::move(r);
    });
  }

  void AskAs(const std::string& tenant, size_t rows, Answer* answer, int64_t min_draws = 0) {
    Ask(Rows(std::vector<float>(rows, 1)), answer, absl::Seconds(60), PredictPriority::kNormal,
        {.draws = {.job = tenant}, .min_draws = min_draws, .tenant = tenant});
  }

  FakeClock clock;
  ManualExecutor executor;
  testing::FakeDrawCatalog catalog;
  testing::FakeShardPort port;
  ShardQueue queue;
  PredictRouter router;
  InferenceStatistics statistics;
  Batcher batcher;
};

TEST(Batcher, GathersWhatComesWhileTheWorkersAreBusyAndGivesEachItsOwnRows) {
  World world;
  std::vector<Answer> answers(6), alone(6);
  std::vector<std::shared_ptr<const InputTensor>> inputs;
  for (int i = 0; i < 6; ++i) inputs.push_back(Rows({static_cast<float>(i), static_cast<float>(10 * i)}));
  for (int i = 0; i < 6; ++i) world.Ask(inputs[i], &answers[i]);
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_EQ(static_cast<int>(world.port.sent.size()), 3) << "two at once, the four others together";
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(answers[i] && answers[i]->ok()) << i;
    world.router.Predict({{"job", 0, 0, false}, {}, 0}, inputs[i], absl::Seconds(60),
                         [&alone, i](absl::StatusOr<Prediction> r) { alone[i] = std::move(r); });
    world.executor.RunFor(absl::Seconds(1));
    EXPECT_EQ((*answers[i])->num_rows, 2);
    EXPECT_EQ((*answers[i])->scores.classes().mean_probability, (*alone[i])->scores.classes().mean_probability) << i;
    EXPECT_EQ((*answers[i])->errors.classes().mutual_information, (*alone[i])->errors.classes().mutual_information)
        << i;
  }
}

TEST(Batcher, ShardsSayWhichRequestTheyAreForAndHowManyOthers) {
  World world;
  std::vector<Answer> answers(5);
  for (int i = 0; i < 5; ++i) {
    PredictQuery query{.draws = {.job = "job"}, .trace_id = "request-" + std::to_string(i)};
    world.Ask(Rows({1}), &answers[i], absl::Seconds(60), PredictPriority::kNormal, std::move(query));
  }
  world.executor.RunFor(absl::Seconds(1));
  std::vector<std::string> traces;
  for (const auto& sent : world.port.sent) traces.push_back(sent.request.trace_id);
  EXPECT_THAT(traces, ::testing::ElementsAre("request-0", "request-1", "request-2+2"));
}

TEST(Batcher, TellsWhatTheTimeWasSpentOn) {
  struct Told final : PredictObserver {
    void OnRequest(absl::Duration total, absl::Duration queue) override {
      totals.push_back(total);
      queues.push_back(queue);
    }
    void OnBatch(int64_t requests, int64_t rows) override { batches.emplace_back(requests, rows); }
    void OnAverage(const AverageFigures& figures) override { averages.push_back(figures); }
    std::vector<absl::Duration> totals, queues;
    std::vector<std::pair<int64_t, int64_t>> batches;
    std::vector<AverageFigures> averages;
  } told;
  World world({}, &told);
  world.port.shard_time = absl::Seconds(2);
  std::vector<Answer> answers(4);
  for (Answer& answer : answers) world.Ask(Rows({1, 2}), &answer);
  world.executor.RunFor(absl::Seconds(10));
  EXPECT_THAT(told.batches, ::testing::ElementsAre(std::pair(1, 2), std::pair(1, 2), std::pair(2, 4)));
  EXPECT_THAT(told.queues,
              ::testing::ElementsAre(absl::ZeroDuration(), absl::ZeroDuration(), absl::Seconds(2), absl::Seconds(2)));
  EXPECT_THAT(told.totals,
              ::testing::ElementsAre(absl::Seconds(2), absl::Seconds(2), absl::Seconds(4), absl::Seconds(4)));
  ASSERT_EQ(told.averages.size(), 3u);
  EXPECT_EQ(told.averages[0].workers, absl::Seconds(2));
  EXPECT_EQ(told.averages[0].draws, 5);
}

TEST(Batcher, WaitsForCompanyNoLongerThanItIsTold) {
  World world({.max_rows = 4, .max_delay = absl::Milliseconds(5)});
  Answer first, second, third;
  world.Ask(Rows({1}), &first);
  world.executor.RunFor(absl::Milliseconds(4));
  EXPECT_EQ(static_cast<int>(world.port.sent.size()), 0);
  world.Ask(Rows({2}), &second);
  world.executor.RunFor(absl::Milliseconds(2));
  EXPECT_EQ(static_cast<int>(world.port.sent.size()), 1);
  EXPECT_TRUE(first && second);
  world.Ask(Rows({3, 4, 5, 6}), &third);
  world.executor.RunUntilIdle();
  EXPECT_TRUE(third) << "a full batch does not wait";
}

TEST(Batcher, KeepsBatchesBelowTheirBound) {
  World world({.max_rows = 3});
  std::vector<Answer> answers(8);
  for (Answer& answer : answers) world.Ask(Rows({1}), &answer);
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_EQ(static_cast<int>(world.port.sent.size()), 4) << "1, 1, 3, 3";
}

TEST(Batcher, OnlyFullBatchesQueueUpAtTheWorkers) {
  World world({.max_rows = 3});
  world.port.workers = {{"a", Mood::kHangs}};
  std::vector<Answer> answers(14);
  std::vector<size_t> sent;
  for (Answer& answer : answers) {
    world.Ask(Rows({1}), &answer);
    world.executor.RunUntilIdle();
    sent.push_back(world.port.sent.size());
  }
  EXPECT_EQ(sent, (std::vector<size_t>{1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4})) << "1, 1, 3, 3, and no more";
}

TEST(Batcher, ASmallRequestDoesNotWaitForThoseTooLargeToShare) {
  World world({.max_rows = 3});
  world.port.workers = {{"a", Mood::kHangs}};
  std::vector<Answer> large(Batcher::kFullBatchesInFlight + 1);
  Answer small;
  for (Answer& answer : large) world.Ask(Rows({1, 2, 3, 4}), &answer);
  world.Ask(Rows({1}), &small);
  world.executor.RunUntilIdle();
  world.port.AnswerOldest();  // the worker had no room for more
  world.executor.RunUntilIdle();
  std::vector<int64_t> sent;
  for (const auto& shard : world.port.sent) sent.push_back(shard.request.inputs->shape.front());
  EXPECT_THAT(sent, ::testing::ElementsAre(4, 4, 4, 4, 1));
  world.executor.RunFor(absl::Minutes(2));  // calls own themselves until they end
}

TEST(Batcher, ServesTheUrgentFirst) {
  World world({.max_rows = 1});
  world.port.workers = {{"a", Mood::kHangs}};
  std::vector<Answer> busy(Batcher::kFullBatchesInFlight);
  for (Answer& answer : busy) world.Ask(Rows({0}), &answer, absl::Seconds(1));
  world.executor.RunUntilIdle();
  Answer low, high;
  world.Ask(Rows({1}), &low, absl::Seconds(60), PredictPriority::kLow);
  world.Ask(Rows({2}), &high, absl::Seconds(60), PredictPriority::kHigh);
  world.executor.RunUntilIdle();
  world.port.workers = {{"a", Mood::kAnswers}};
  while (!low && !high) ASSERT_TRUE(world.executor.RunOne() || (world.clock.Advance(absl::Milliseconds(100)), true));
  EXPECT_TRUE(high);
  EXPECT_FALSE(low);
  world.executor.RunFor(absl::Minutes(1));  // calls own themselves until they end
}

// Requests for a model that is called as they are; what was sent is told by it.
struct Models {
  explicit Models(BatchLimits limits) : world(limits) { world.port.workers = {{"a", Mood::kHangs}}; }

  void Ask(const std::string& model, PredictPriority priority, bool anytime = false) {
    PredictQuery query{.draws = {.job = model}, .anytime = anytime, .trace_id = model};
    world.Ask(Rows({1}), &answers.emplace_back(), absl::Seconds(60), priority, std::move(query));
    world.executor.RunUntilIdle();
  }
  void AnswerOldest() {
    world.port.AnswerOldest();
    world.executor.RunUntilIdle();
  }
  // Versions whose shards were sent since the worker had no room.
  std::vector<std::string> SentLater() const {
    std::vector<std::string> models;
    for (size_t i = limits::kMaxShardsInFlightPerWorker; i < world.port.sent.size(); ++i) {
      models.push_back(world.port.sent[i].request.trace_id);
    }
    return models;
  }

  World world;
  std::deque<Answer> answers;
};

TEST(Batcher, AModelsUrgentRequestGoesBeforeTheLessUrgentOfOthers) {
  Models models({.max_rows = 1});
  for (int i = 0; i < Batcher::kFullBatchesInFlight; ++i) models.Ask("first", PredictPriority::kLow);
  for (int i = 0; i < 2; ++i) models.Ask("waits", PredictPriority::kLow);
  models.Ask("alone", PredictPriority::kLow, /*anytime=*/true);
  models.Ask("usual", PredictPriority::kNormal);
  models.Ask("urgent", PredictPriority::kHigh);
  models.Ask("urgent alone", PredictPriority::kHigh, /*anytime=*/true);
  EXPECT_TRUE(models.SentLater().empty());
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) models.AnswerOldest();
  EXPECT_THAT(models.SentLater(), ::testing::ElementsAre("urgent", "urgent alone", "usual", "waits"));
  models.world.executor.RunFor(absl::Minutes(2));  // calls own themselves until they end
}

TEST(Batcher, ABatchIsAsUrgentAsItsMostUrgentRequest) {
  Models models({.max_rows = 8});
  for (int i = 0; i < 2; ++i) models.Ask("mixed", PredictPriority::kNormal);
  for (int i = 0; i < 2; ++i) models.Ask("first", PredictPriority::kNormal);
  models.Ask("other", PredictPriority::kNormal);
  models.Ask("mixed", PredictPriority::kLow);
  models.Ask("mixed", PredictPriority::kHigh);
  models.AnswerOldest();
  EXPECT_THAT(models.SentLater(), ::testing::ElementsAre("mixed+1"));
  models.world.executor.RunFor(absl::Minutes(2));
}

TEST(Batcher, AnUrgentRequestDoesNotWaitForLessUrgentBatchesOfItsOwnKind) {
  Models models({.max_rows = 8});
  for (int i = 0; i < 3; ++i) models.Ask("model", PredictPriority::kLow);
  EXPECT_EQ(models.world.port.sent.size(), 2u);
  models.Ask("model", PredictPriority::kHigh);
  EXPECT_EQ(models.world.port.sent.size(), 3u) << "with the low one, which waited";
  for (int i = 0; i < 2; ++i) models.Ask("model", PredictPriority::kHigh);
  EXPECT_EQ(models.world.port.sent.size(), 4u) << "then for urgent ones as before";
  models.world.executor.RunFor(absl::Minutes(2));
}

TEST(Batcher, AnExpiredRequestNeverReachesAWorker) {
  World world({.max_rows = 8});
  world.port.workers = {{"a", Mood::kHangs}};
  std::vector<Answer> busy(2);
  for (Answer& answer : busy) world.Ask(Rows({0}), &answer, absl::Seconds(10));
  world.executor.RunUntilIdle();
  Answer late;
  world.Ask(Rows({1}), &late, absl::Seconds(1));
  world.executor.RunFor(absl::Seconds(2));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->status().code(), absl::StatusCode::kDeadlineExceeded);
  const int sent = static_cast<int>(world.port.sent.size());
  world.executor.RunFor(absl::Seconds(20));
  EXPECT_EQ(static_cast<int>(world.port.sent.size()), sent);
}

TEST(Batcher, ARequestWhoseTimeIsOverBeforeItIsTakenNeverReachesAWorker) {
  World world;
  Answer late;
  world.Ask(Rows({1}), &late, absl::Seconds(1));
  world.clock.Advance(absl::Seconds(1));  // it is still on its way in, and no timer has been set
  world.executor.RunUntilIdle();
  ASSERT_TRUE(late);
  EXPECT_EQ(late->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(world.port.sent.size(), 0u);
}

TEST(Batcher, ABatchThatBeginsAsARequestExpiresBeginsWithoutIt) {
  World world({.max_rows = 8, .max_delay = absl::Milliseconds(5)});
  Answer kept, late;
  world.Ask(Rows({1}), &kept);
  world.Ask(Rows({2, 3}), &late, absl::Milliseconds(5));  // its timer runs after that of the batch
  world.executor.RunFor(absl::Seconds(1));
  ASSERT_TRUE(kept && kept->ok());
  ASSERT_TRUE(late);
  EXPECT_EQ(late->status().code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_EQ(world.port.sent.size(), 1u);
  EXPECT_EQ(world.port.sent[0].request.inputs->shape.front(), 1);
}

TEST(Batcher, ExpiredAndCancelledRequestsLeaveRoomWhileTheBatchesHang) {
  World world({.max_waiting = 2});
  world.port.workers = {{"a", Mood::kHangs}};
  std::vector<Answer> busy(2), expiring(2), after(2);
  for (Answer& answer : busy) world.Ask(Rows({0}), &answer);
  for (Answer& answer : expiring) world.Ask(Rows({1}), &answer, absl::Seconds(1));
  Answer refused;
  world.Ask(Rows({2}), &refused);
  world.executor.RunFor(Batcher::kRefusalDelay);
  ASSERT_TRUE(refused);
  EXPECT_EQ(ReasonOf(refused->status()), "QUEUE_FULL");
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_TRUE(expiring[0] && expiring[1]);
  std::vector<std::function<void()>> cancels;
  for (Answer& answer : after) cancels.push_back(world.Ask(Rows({3}), &answer));
  world.executor.RunUntilIdle();
  EXPECT_FALSE(after[0] || after[1]) << "there is room again";
  for (const auto& cancel : cancels) cancel();
  world.executor.RunUntilIdle();
  Answer last;
  world.Ask(Rows({4}), &last);
  world.executor.RunUntilIdle();
  EXPECT_FALSE(last) << "and after a cancel";
  EXPECT_EQ(world.port.sent.size(), 2u);
  world.executor.RunFor(absl::Minutes(2));  // calls own themselves until they end
}

TEST(Batcher, ASlowWorkerIsPassedOverInTimeForTheMostHurriedOfABatch) {
  World world({.max_rows = 8, .max_delay = absl::Milliseconds(5)});
  world.port.workers = {{"a", Mood::kHangs}, {"b", Mood::kHangs}};
  Answer patient, hurried;
  world.Ask(Rows({1}), &patient);
  world.Ask(Rows({2}), &hurried, absl::Seconds(3));
  world.executor.RunFor(absl::Milliseconds(10));
  ASSERT_EQ(world.port.sent.size(), 2u) << "a chain at each worker";
  world.port.AnswerOpen("b");
  world.port.workers["b"] = Mood::kAnswers;
  world.executor.RunFor(absl::Seconds(1.5));
  EXPECT_TRUE(patient && patient->ok());
  EXPECT_TRUE(hurried && hurried->ok());
}

TEST(Batcher, AnsweredRequestsLeaveNoTimersBehind) {
  World world;
  std::vector<Answer> answers(50);
  for (Answer& answer : answers) {
    world.Ask(Rows({1}), &answer);
    world.executor.RunUntilIdle();
    ASSERT_TRUE(answer && answer->ok());
  }
  world.clock.Advance(absl::Minutes(2));
  EXPECT_LT(world.executor.RunUntilIdle(), 10) << "one timer for all requests, one for all shards";
}

TEST(Batcher, ACancelledRequestLeavesTheOthersOfItsBatchAlone) {
  World world({.max_rows = 8, .max_delay = absl::Milliseconds(5)});
  Answer kept, gone;
  world.Ask(Rows({1}), &kept);
  const auto cancel = world.Ask(Rows({2}), &gone);
  world.executor.RunUntilIdle();
  world.clock.Advance(absl::Milliseconds(5));
  ASSERT_TRUE(world.executor.RunOne());  // the batch begins
  cancel();
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_EQ(gone->status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(kept && kept->ok());
}

TEST(Batcher, ABatchThatAllHaveLeftIsCancelled) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  Answer gone;
  const auto cancel = world.Ask(Rows({1}), &gone);
  world.executor.RunUntilIdle();
  EXPECT_EQ(world.port.cancelled.size(), 0u);
  cancel();
  world.executor.RunUntilIdle();
  EXPECT_EQ(world.port.cancelled.size(), 1u);
}

TEST(Batcher, ABadRowIsTheFaultOfItsOwnRequestAlone) {
  World world({.max_rows = 8, .max_delay = absl::Milliseconds(5)});
  Answer good, bad;
  world.Ask(Rows({1}), &good);
  world.Ask(Rows({std::numeric_limits<float>::quiet_NaN()}), &bad);
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_TRUE(good && good->ok()) << (good ? good->status() : absl::OkStatus());
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->status().code(), absl::StatusCode::kInvalidArgument);
}

// Three whose bytes are those of three rows together, and only one of which has those of its own.
TEST(Batcher, BytesThatAreNotThoseOfTheirShapeShiftNobodyElsesRows) {
  World world({.max_rows = 8, .max_delay = absl::Milliseconds(5)});
  std::array<Answer, 3> answers;
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto inputs = std::make_shared<InputTensor>(*Rows({static_cast<float>(i)}));
    inputs->bytes.resize(3 + i);
    world.Ask(inputs, &answers[i]);
  }
  world.executor.RunFor(absl::Seconds(1));
  for (const size_t i : {0, 2}) {
    ASSERT_TRUE(answers[i]);
    EXPECT_TRUE(absl::IsInvalidArgument(answers[i]->status())) << answers[i]->status();
  }
  ASSERT_TRUE(answers[1]);
  EXPECT_TRUE(answers[1]->ok()) << answers[1]->status();
}

TEST(Batcher, RefusesInputsOfMoreBytesThanItMayHold) {
  World world({.max_bytes = 12});
  world.port.workers = {{"a", Mood::kHangs}};
  std::vector<Answer> answers(4);
  world.Ask(Rows({1, 2}), &answers[0], absl::Seconds(1));
  world.Ask(Rows({1, 2}), &answers[1]);
  world.Ask(Rows({1}), &answers[2], absl::Seconds(1));
  world.executor.RunFor(Batcher::kRefusalDelay);
  ASSERT_TRUE(answers[1] && !answers[0] && !answers[2]);
  EXPECT_EQ(BoundOf(answers[1]->status()), "prediction_input_bytes");
  world.executor.RunFor(absl::Seconds(2));
  world.port.sent.clear();  // which holds what was sent
  world.Ask(Rows({1, 2, 3}), &answers[3]);
  world.executor.RunUntilIdle();
  EXPECT_FALSE(answers[3]) << "the others were given up";
}

TEST(Batcher, ExpiredAndCancelledRequestsReturnTheirBytesWhileTheBatchesHang) {
  World world({.max_bytes = 16});
  world.port.workers = {{"a", Mood::kHangs}};
  std::vector<Answer> busy(2);
  for (Answer& answer : busy) world.Ask(Rows({0}), &answer);
  Answer gone, late, after;
  const auto cancel = world.Ask(Rows({1}), &gone);
  world.Ask(Rows({1}), &late, absl::Seconds(1));
  world.executor.RunUntilIdle();
  cancel();
  world.executor.RunFor(absl::Seconds(2));
  ASSERT_TRUE(gone && late && !busy[0] && !busy[1]);
  world.Ask(Rows({2, 3}), &after, absl::Seconds(60), PredictPriority::kNormal, {.draws = {.job = "other"}});
  world.executor.RunUntilIdle();
  EXPECT_FALSE(after) << after->status();
  world.executor.RunFor(absl::Minutes(2));  // calls own themselves until they end
}

TEST(Batcher, RefusesMoreThanMayWait) {
  World world({.max_waiting = 3});
  world.port.workers = {{"a", Mood::kHangs}};
  std::vector<Answer> answers(7);
  for (Answer& answer : answers) world.Ask(Rows({1}), &answer);
  world.executor.RunUntilIdle();
  EXPECT_FALSE(answers[5]) << "refusals are slow";
  world.executor.RunFor(Batcher::kRefusalDelay);
  ASSERT_TRUE(answers[5] && !answers[6]) << "two under way, three wait; refusals leave one after another";
  EXPECT_EQ(ReasonOf(answers[5]->status()), "QUEUE_FULL");
  EXPECT_FALSE(answers[4]);
}

TEST(Batcher, EachTenantHasItsShareOfThePlacesThatWait) {
  World world({.max_waiting = 4});
  world.port.workers = {{"a", Mood::kHangs}};
  std::vector<Answer> flood(7), quiet(5);
  for (Answer& answer : flood) world.AskAs("flood", 1, &answer);
  world.executor.RunFor(Batcher::kRefusalDelay);
  EXPECT_FALSE(flood[5]) << "two under way, four wait";
  ASSERT_TRUE(flood[6]);
  EXPECT_EQ(ReasonOf(flood[6]->status()), "QUEUE_FULL");
  for (Answer& answer : quiet) world.AskAs("quiet", 1, &answer);
  world.executor.RunFor(Batcher::kRefusalDelay);
  EXPECT_FALSE(quiet[3]) << "two under way, two wait: half of the places";
  ASSERT_TRUE(quiet[4]);
  EXPECT_EQ(ReasonOf(quiet[4]->status()), "QUEUE_FULL");
}

TEST(Batcher, BatchesAreShortWhileAnotherTenantPredictsToo) {
  World world;
  const auto rows_sent_of_a_flood = [&] {
    world.port.sent.clear();
    std::vector<Answer> flood(12);
    for (Answer& answer : flood) world.AskAs("flood", 16, &answer);
    world.executor.RunFor(absl::Milliseconds(100));
    const auto rows = [](const auto& sent) { return sent.request.inputs->shape.front(); };
    return rows(*std::ranges::max_element(world.port.sent, {}, rows));
  };
  std::vector<Answer> quiet(2);
  for (const int least : {0, 1}) {
    EXPECT_EQ(rows_sent_of_a_flood(), 160) << "two under way, ten together";
    world.AskAs("quiet", 1, &quiet[least], least);  // shares no batch, if it needs a least number of draws
    EXPECT_EQ(rows_sent_of_a_flood(), 64) << least;
    world.executor.RunFor(absl::Seconds(2));
  }
}

TEST(Batcher, AVersionIsServedToThoseWhoAskedForItBeforeItWasDeleted) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  const PredictQuery third{.draws = {.job = "job", .version = 3}};
  std::vector<Answer> busy(2), waiting(2);
  for (Answer& answer : busy) world.Ask(Rows({0}), &answer, absl::Seconds(60), PredictPriority::kNormal, third);
  world.executor.RunUntilIdle();
  for (Answer& answer : waiting) world.Ask(Rows({1}), &answer, absl::Seconds(60), PredictPriority::kNormal, third);
  world.executor.RunUntilIdle();
  ASSERT_EQ(world.port.sent.size(), 2u);
  world.catalog.versions.clear();
  Answer after;
  world.Ask(Rows({1}), &after, absl::Seconds(60), PredictPriority::kNormal, third);
  world.executor.RunUntilIdle();
  ASSERT_TRUE(after);
  EXPECT_TRUE(absl::IsNotFound(after->status())) << after->status();
  world.port.workers = {{"a", Mood::kAnswers}};
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  for (const Answer& answer : waiting) EXPECT_TRUE(answer && answer->ok()) << answer->status();
  EXPECT_EQ(world.port.sent.size(), 3u) << "those that waited share a pass";
}

TEST(Batcher, RequestsForAVersionThatComeWhileItIsLookedUpShareTheNextLook) {
  World world({.max_rows = 8, .max_delay = absl::Milliseconds(5)});
  const PredictQuery third{.draws = {.job = "job", .version = 3}};
  PredictQuery alias = third;
  alias.draws.pinned = std::make_shared<const Version>(Version{.job = "job", .number = 3});
  std::vector<Answer> answers(6);
  for (Answer& answer : answers) {
    world.Ask(Rows({1}), &answer, absl::Seconds(60), PredictPriority::kNormal, &answer == &answers[0] ? alias : third);
  }
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_EQ(world.catalog.looked_up, 2);
  EXPECT_EQ(world.port.sent.size(), 1u) << "by number or by alias, it is one version";
  for (const Answer& answer : answers) EXPECT_TRUE(answer && answer->ok());
}

TEST(Batcher, ARequestThatEndsWhileItsVersionIsLookedUpNeverReachesAWorker) {
  World world;
  Answer gone;
  const auto cancel =
      world.Ask(Rows({1}), &gone, absl::Seconds(60), PredictPriority::kNormal, {.draws = {.job = "job", .version = 3}});
  cancel();
  world.executor.RunFor(absl::Seconds(1));
  ASSERT_TRUE(gone);
  EXPECT_TRUE(absl::IsCancelled(gone->status()));
  EXPECT_EQ(world.catalog.looked_up, 1);
  EXPECT_EQ(world.port.sent.size(), 0u);
}

TEST(Batcher, DoesNotMixRequestsForDifferentDraws) {
  World world({.max_rows = 8, .max_delay = absl::Milliseconds(5)});
  Answer all, newest;
  world.Ask(Rows({1}), &all);
  world.Ask(Rows({1}), &newest, absl::Seconds(60), PredictPriority::kNormal, {{"job", 0, 1, false}, {}, 0});
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_EQ(static_cast<int>(world.port.sent.size()), 2);
}

TEST(Batcher, CountsRequestsAndBatchesWithTheTimesTheyTook) {
  World world;
  world.port.shard_time = absl::Seconds(1);
  std::vector<Answer> answers(4);
  for (int i = 0; i < 4; ++i) world.Ask(Rows({0, 1}), &answers[static_cast<size_t>(i)]);
  world.executor.RunFor(absl::Seconds(10));
  for (const Answer& answer : answers) ASSERT_TRUE(answer && answer->ok());
  const std::vector<InferenceCount> counts = world.statistics.Of("job-aaaaaa", 0);
  ASSERT_EQ(counts.size(), 1u);
  const InferenceCount& count = counts[0];
  EXPECT_EQ(count.version, 3);
  EXPECT_EQ(count.succeeded, 4u);
  EXPECT_EQ(count.rows, 8u);
  EXPECT_EQ(count.executions, 3u) << "two alone, then the two that waited";
  EXPECT_EQ(count.batches.at(2).executions, 2u);
  EXPECT_EQ(count.batches.at(4).executions, 1u);
  // One worker answers the first two and then the third batch, which begins when the first ends.
  EXPECT_EQ(count.batches.at(4).compute.infer, absl::Seconds(1));
  EXPECT_EQ(count.success.queue, 2 * absl::Seconds(1)) << "of the last two";
  EXPECT_EQ(count.success.compute.infer, 4 * absl::Seconds(1));
  EXPECT_EQ(count.success.total, count.success.queue + count.success.compute.infer);
}

TEST(Batcher, CountsWhatGoesAloneAndLeavesFailuresToWhoKnowsTheVersion) {
  World world;
  Answer bad, alone;
  world.Ask(Rows({std::numeric_limits<float>::quiet_NaN()}), &bad);
  world.Ask(Rows({1, 2, 3}), &alone, absl::Seconds(60), PredictPriority::kNormal,
            {.draws = {.job = "job"}, .anytime = true});
  world.executor.RunFor(absl::Seconds(1));
  ASSERT_TRUE(bad && alone && alone->ok());
  EXPECT_TRUE(world.statistics.Of("job", 0).empty());
  const InferenceCount count = world.statistics.Of("job-aaaaaa", 3).at(0);
  EXPECT_EQ(count.succeeded, 1u);
  EXPECT_EQ(count.batches.at(3).executions, 1u);
}

TEST(Batcher, RequestsForOtherDrawsShareNoBatch) {
  World world;
  std::vector<Answer> answers(8);
  PredictQuery query{.draws = {.job = "job"}};
  for (size_t i = 0; i < answers.size(); ++i) {
    query.draws.every = static_cast<int64_t>(i % 2);
    query.draws.chains = {static_cast<int32_t>(i / 2 % 2)};
    world.Ask(Rows({1}), &answers[i], absl::Seconds(60), PredictPriority::kNormal, query);
  }
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_EQ(world.port.sent.size(), 8u) << "four kinds with two requests each, none in company";
}

}  // namespace
}  // namespace chainfleet
