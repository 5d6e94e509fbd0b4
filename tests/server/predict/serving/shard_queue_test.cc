#include "server/predict/serving/shard_queue.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/base/limits.h"
#include "core/base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::ResultOf;
using ::testing::SizeIs;
using Mood = testing::FakeShardPort::Mood;

struct World {
  explicit World(const std::map<std::string, Mood>& workers) { port.workers = workers; }

  ShardRequest RequestOf(const std::string& tenant) const {
    ShardRequest request;
    auto plan = std::make_shared<PredictPlan>(*catalog.pinned.plan);
    plan->tenant = tenant;
    request.plan = plan;
    request.chains = catalog.pinned.chains;
    request.kinds = {DrawKind::kTheta};
    request.inputs = testing::NumberedRows(1);
    return request;
  }
  uint64_t Submit(const std::string& preferred = "", int64_t first_row = 0,
                  absl::Duration time = absl::InfiniteDuration(), PredictPriority priority = PredictPriority::kNormal) {
    return Submit(RequestOf(catalog.pinned.plan->tenant), preferred, first_row, time, priority);
  }
  uint64_t SubmitEvaluation(int64_t first_row = 0) {
    ShardRequest request;
    request.plan = catalog.pinned.plan;
    request.chains = catalog.pinned.chains;
    request.kinds = {DrawKind::kTheta};
    request.rows = DatasetRows{{.name = "test"}, first_row, 1};
    return Submit(std::move(request), "", first_row, absl::InfiniteDuration());
  }
  uint64_t Submit(ShardRequest request, const std::string& preferred, int64_t first_row, absl::Duration time,
                  PredictPriority priority = PredictPriority::kNormal) {
    const uint64_t ticket =
        queue.Submit(std::move(request), preferred, clock.Monotonic() + time, priority, [this, first_row](auto result) {
          done.push_back(first_row);
          results.push_back(std::move(result));
        });
    executor.RunUntilIdle();
    return ticket;
  }
  // For each sent shard an 'e' if it belongs to an evaluation, a 'p' if to a prediction.
  std::string Kinds() const {
    std::string kinds;
    for (const auto& sent : port.sent) kinds += sent.request.rows ? 'e' : 'p';
    return kinds;
  }
  void AnswerOldest() {
    port.AnswerOldest();
    executor.RunUntilIdle();
  }
  std::vector<std::string> Receivers() const {
    std::vector<std::string> workers;
    for (const auto& sent : port.sent) workers.push_back(sent.worker);
    return workers;
  }

  FakeClock clock;
  ManualExecutor executor{&clock};
  testing::FakeDrawCatalog catalog{&executor, {2}, Classes{3}};
  testing::FakeShardPort port{&executor, testing::ArbitraryProbabilities(3)};
  std::vector<int64_t> done;  // results of Submit, in order of arrival
  std::vector<absl::StatusOr<ShardResult>> results;
  ShardQueue queue{&clock, &executor, &port};
};

TEST(ShardQueue, GivesTheShardToTheWorkerThatIsPreferred) {
  World world({{"a", Mood::kAnswers}, {"b", Mood::kAnswers}, {"c", Mood::kAnswers}});
  world.Submit("b");
  EXPECT_THAT(world.Receivers(), ElementsAre("b"));
  ASSERT_THAT(world.results, SizeIs(1));
  ASSERT_TRUE(world.results[0].ok());
  EXPECT_THAT(world.results[0]->partials, SizeIs(1));
}

TEST(ShardQueue, SpreadsShardsWithoutPreferenceOverTheLeastLoaded) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kHangs}});
  world.Submit("a");
  world.Submit("gone");
  world.Submit();
  world.Submit();
  EXPECT_THAT(world.Receivers(), ElementsAre("a", "b", "a", "b"));
}

TEST(ShardQueue, PassesOverAPreferredWorkerThatIsFull) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kHangs}});
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) world.Submit("a");
  world.Submit("a");
  EXPECT_EQ(world.Receivers().back(), "b");
}

TEST(ShardQueue, HoldsBackWhatNoWorkerHasRoomForAndSendsTheOldestFirst) {
  World world({{"a", Mood::kHangs}});
  const int64_t room = limits::kMaxShardsInFlightPerWorker;
  for (int64_t i = 0; i < 2 * room; ++i) world.Submit("", i);
  EXPECT_THAT(world.port.sent, SizeIs(room));
  world.port.workers["a"] = Mood::kAnswers;
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.done, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(world.port.most_in_flight, room);
}

TEST(ShardQueue, PredictionsGoBeforeEvaluationsThatWait) {
  World world({{"a", Mood::kHangs}});
  for (int64_t i = 0; i < 6; ++i) world.SubmitEvaluation(i);
  for (int64_t i = 0; i < 3; ++i) world.Submit("", 10 + i);
  EXPECT_EQ(world.Kinds(), "eeep") << "one place is not for evaluations";
  for (int answered = 0; answered < 2; ++answered) world.AnswerOldest();
  EXPECT_EQ(world.Kinds(), "eeeppp") << "the next two places";
  world.AnswerOldest();
  EXPECT_EQ(world.Kinds(), "eeepppe");
}

TEST(ShardQueue, EvaluationsGoOnBesidePredictionsWithoutEnd) {
  World world({{"a", Mood::kHangs}});
  for (int64_t i = 0; i < 6; ++i) world.Submit("", i);
  EXPECT_EQ(world.Kinds(), "pppp") << "all places are for predictions while no evaluation waits";
  for (int64_t i = 0; i < 3; ++i) world.SubmitEvaluation(100 + i);
  for (int64_t i = 6; i < 20; ++i) {
    world.Submit("", i);
    world.AnswerOldest();
  }
  EXPECT_EQ(world.Kinds(), "ppppepppepppeppppp");
  EXPECT_THAT(world.done, IsSupersetOf({100, 101, 102}));
}

TEST(ShardQueue, TheMostUrgentOfThoseThatWaitIsSentFirstThenTheOldest) {
  World world({{"a", Mood::kHangs}});
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) world.Submit();
  world.SubmitEvaluation(9);
  int64_t row = 1;
  for (const auto priority : {PredictPriority::kLow, PredictPriority::kNormal, PredictPriority::kHigh}) {
    for (int i = 0; i < 2; ++i) world.Submit("", row++, absl::InfiniteDuration(), priority);
  }
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) world.AnswerOldest();
  world.done.clear();
  world.port.workers["a"] = Mood::kAnswers;
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.done, ElementsAre(9, 5, 6, 3, 4, 1, 2)) << "9 in the place that is kept for evaluations";
}

TEST(ShardQueue, TenantsTakeTurns) {
  World world({{"a", Mood::kHangs}});
  const auto submit = [&](const std::string& tenant, int64_t first_row) {
    world.Submit(world.RequestOf(tenant), "", first_row, absl::InfiniteDuration());
  };
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) submit("flood", -1);
  for (const int64_t row : {0, 1, 2, 3}) submit("flood", row);
  for (const int64_t row : {10, 11}) submit("quiet", row);
  EXPECT_THAT(world.port.sent, SizeIs(limits::kMaxShardsInFlightPerWorker + 1))
      << "10 has a place although all are taken";
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) world.AnswerOldest();
  world.done.clear();
  for (int i = 0; i < 6; ++i) world.AnswerOldest();
  EXPECT_THAT(world.done, ElementsAre(10, 0, 1, 11, 2, 3));
}

TEST(ShardQueue, AnEvaluationGoesOnHoweverManyTenantsPredict) {
  World world({{"a", Mood::kHangs}});
  for (int i = 0; i < 16; ++i) {
    if (i == 8) world.SubmitEvaluation(9);
    if (i >= 8) world.AnswerOldest();
    world.Submit(world.RequestOf("tenant-" + std::to_string(i % 8)), "", 0, absl::InfiniteDuration());
  }
  EXPECT_THAT(world.Kinds(), HasSubstr("e"));
}

TEST(ShardQueue, AWorkerThatAnswersOnlyOtherTenantsIsSlowInTheEnd) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kHangs}});
  const absl::Duration time = absl::Milliseconds(1500);
  world.Submit(world.RequestOf("long"), "a", 0, time);
  for (int i = 1; i < 10; ++i) {
    world.Submit(world.RequestOf("quiet"), "a", i, time);
    world.executor.RunFor(absl::Milliseconds(200));
    world.port.AnswerNewest();
    world.executor.RunUntilIdle();
    EXPECT_TRUE(i > 4 || world.port.sent.back().worker == "a") << "they may have overtaken the long one";
  }
  EXPECT_THAT(world.Receivers(), Contains("b"));
}

TEST(ShardQueue, AWorkerOfATenantGetsNoShardOfAnother) {
  World world({{"own", Mood::kAnswers}});
  world.port.tenant_of["own"] = "vision";
  const ShardRequest request = world.RequestOf("speech");
  world.Submit(request, "own", 0, absl::InfiniteDuration());
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_EQ(ReasonOf(world.results[0].status()), "NO_SERVING_WORKER");
  world.port.workers["any"] = Mood::kAnswers;
  world.Submit(request, "own", 1, absl::InfiniteDuration());
  ASSERT_THAT(world.results, SizeIs(2));
  EXPECT_TRUE(world.results[1].ok());
  EXPECT_EQ(world.port.sent.back().worker, "any");
  EXPECT_THAT(world.queue.WorkerIds("speech"), ElementsAre("any"));
}

TEST(ShardQueue, PredictionsThatWaitTakeNoPlaceFromEvaluations) {
  World world({{"a", Mood::kHangs}});
  const size_t room = limits::kMaxWaitingShards + limits::kMaxShardsInFlightPerWorker;
  for (size_t i = 0; i < room; ++i) world.Submit();
  world.SubmitEvaluation();
  EXPECT_THAT(world.results, IsEmpty());
  world.Submit();
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_EQ(ReasonOf(world.results[0].status()), "QUEUE_FULL");
}

TEST(ShardQueue, RetriesAtOnceElsewhereUnderANewId) {
  World world({{"a", Mood::kLosesShards}, {"b", Mood::kAnswers}});
  world.Submit("a");
  EXPECT_THAT(world.Receivers(), ElementsAre("a", "b"));
  EXPECT_NE(world.port.sent[0].request.shard_id, world.port.sent[1].request.shard_id);
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_TRUE(world.results[0].ok());
}

TEST(ShardQueue, PausesBeforeAWorkerThatLostTheShardGetsItAgain) {
  World world({{"a", Mood::kIsFull}});
  world.Submit("a");
  EXPECT_THAT(world.port.sent, SizeIs(1));
  world.executor.RunFor(limits::kRetryInitial - absl::Milliseconds(1));
  EXPECT_THAT(world.port.sent, SizeIs(1));
  world.port.workers["a"] = Mood::kAnswers;
  world.executor.RunFor(absl::Milliseconds(1));
  EXPECT_THAT(world.port.sent, SizeIs(2));
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_TRUE(world.results[0].ok());
}

TEST(ShardQueue, GivesASlowWorkersShardToAFreeOneAndTakesTheFirstAnswer) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kAnswers}});
  world.Submit("a");
  world.executor.RunFor(ShardQueue::kSlowShard / 2);
  EXPECT_THAT(world.Receivers(), ElementsAre("a")) << "it may still be at work";
  world.executor.RunFor(ShardQueue::kSlowShard / 2);
  EXPECT_THAT(world.Receivers(), ElementsAre("a", "b"));
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_TRUE(world.results[0].ok());
  EXPECT_THAT(world.port.cancelled, ElementsAre(world.port.sent[0].request.shard_id));
  EXPECT_EQ(world.port.num_open(), 0u);
}

TEST(ShardQueue, TakesTheSlowWorkersAnswerIfItComesFirst) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kHangs}});
  world.Submit("a");
  world.executor.RunFor(ShardQueue::kSlowShard);
  ASSERT_THAT(world.Receivers(), ElementsAre("a", "b"));
  world.port.workers.erase("b");  // the second worker is lost; the slow one may still answer
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_TRUE(world.results[0].ok());
}

TEST(ShardQueue, AsksElsewhereAfterAThirdOfTheTimeLeft) {
  for (const absl::Duration time : {absl::Seconds(3), absl::Seconds(12)}) {
    World world({{"a", Mood::kHangs}, {"b", Mood::kAnswers}});
    world.Submit("a", 0, time);
    world.executor.RunFor(time / 3 - absl::Milliseconds(1));
    EXPECT_THAT(world.Receivers(), ElementsAre("a")) << time;
    world.executor.RunFor(absl::Milliseconds(1));
    EXPECT_THAT(world.Receivers(), ElementsAre("a", "b")) << time;
    ASSERT_THAT(world.results, SizeIs(1)) << time;
    EXPECT_TRUE(world.results[0].ok());
  }
  World hurried({{"a", Mood::kHangs}, {"b", Mood::kAnswers}});
  hurried.Submit("a", 0, absl::Milliseconds(9));
  hurried.executor.RunFor(ShardQueue::kLeastSlowShard - absl::Milliseconds(1));
  EXPECT_THAT(hurried.Receivers(), ElementsAre("a")) << "a few milliseconds make no worker slow";
}

TEST(ShardQueue, TheWaitBehindOtherShardsMakesNoWorkerSlow) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kHangs}});
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) world.Submit("a", i, absl::Milliseconds(1500));
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) {
    world.executor.RunFor(absl::Milliseconds(200));  // the last is answered after 800, more than a third
    world.AnswerOldest();
  }
  EXPECT_THAT(world.done, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(world.Receivers(), Each("a"));
}

TEST(ShardQueue, AWorkerThatStopsAfterAnAnswerIsSlowInTimeForTheShardsBehind) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kAnswers}});
  world.Submit("a", 0, absl::Seconds(3));
  world.Submit("a", 1, absl::Seconds(3));
  world.executor.RunFor(absl::Milliseconds(900));
  world.AnswerOldest();
  world.executor.RunFor(absl::Milliseconds(699));
  EXPECT_THAT(world.done, ElementsAre(0)) << "a third of 2.1 s";
  world.executor.RunFor(absl::Milliseconds(1));
  EXPECT_THAT(world.done, ElementsAre(0, 1));
}

TEST(ShardQueue, AnEvaluationThatPredictionsOvertakeMakesNoWorkerSlow) {
  World world({{"a", Mood::kHangs}});
  world.SubmitEvaluation();
  world.port.workers["b"] = Mood::kHangs;
  for (int i = 0; i < 4; ++i) {
    world.Submit("a", 1 + i);
    world.executor.RunFor(ShardQueue::kSlowShard / 2);
    world.port.AnswerNewest();
    world.executor.RunUntilIdle();
  }
  EXPECT_EQ(world.Kinds(), "epppp") << "once each";
}

TEST(ShardQueue, AHurriedShardIsLookedAtBeforeThoseThatHaveTime) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kHangs}});
  world.Submit("a");
  world.Submit("a", 1, absl::Seconds(3));
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_THAT(world.Receivers(), ElementsAre("a", "a", "b"));
}

TEST(ShardQueue, ABusyWorkerTakesASlowOnesShardIfItHasRoom) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kHangs}});
  world.Submit("a", 0, absl::Seconds(3));
  world.Submit("b", 1);
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_THAT(world.Receivers(), ElementsAre("a", "b", "b"));
}

TEST(ShardQueue, LeavesASlowShardWhereItIsWhileTheOthersAreFull) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kHangs}});
  world.Submit("a", 0, absl::Seconds(30));
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) world.Submit("b", 1);
  const size_t sent = world.port.sent.size();
  world.executor.RunFor(absl::Seconds(20));
  EXPECT_THAT(world.port.sent, SizeIs(sent));
  world.port.AnswerOpen(/*worker=*/"b");
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.port.sent, SizeIs(sent + 1)) << "as soon as there is room";
  EXPECT_EQ(world.Receivers().back(), "b");
}

TEST(ShardQueue, AWorkerThatComesLaterTakesASlowOnesShard) {
  World world({{"a", Mood::kHangs}});
  world.Submit("a", 0, absl::Seconds(30));
  world.executor.RunFor(absl::Seconds(15));
  EXPECT_THAT(world.Receivers(), ElementsAre("a"));
  world.port.workers["b"] = Mood::kAnswers;
  world.executor.RunFor(absl::Seconds(5));
  EXPECT_THAT(world.Receivers(), ElementsAre("a", "b"));
}

TEST(ShardQueue, PassesOverASlowWorkerUntilItHasAnswered) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kHangs}});
  world.Submit("a");
  world.executor.RunFor(ShardQueue::kSlowShard / 2);
  world.Submit("b");
  world.executor.RunFor(ShardQueue::kSlowShard / 2);  // a is slow, b is busy
  world.Submit("a");
  EXPECT_EQ(world.Receivers().back(), "b");
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.results, SizeIs(3));
  world.Submit("a");
  EXPECT_EQ(world.Receivers().back(), "a") << "it has caught up";
}

TEST(ShardQueue, AWorkerThatHangsStaysSlowWhenAnotherHasAnsweredForIt) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kAnswers}});
  world.Submit("a", 0, absl::Seconds(30));
  world.executor.RunFor(absl::Seconds(10));
  ASSERT_THAT(world.Receivers(), ElementsAre("a", "b"));
  EXPECT_THAT(world.results, SizeIs(1));
  world.Submit("a");
  EXPECT_EQ(world.Receivers().back(), "b");
  world.executor.RunFor(ShardQueue::kSlowFor);
  world.port.workers["a"] = Mood::kAnswers;
  world.Submit("a");
  EXPECT_EQ(world.Receivers().back(), "a") << "it is tried again";
}

TEST(ShardQueue, AWorkerWhoseLateShardItsCallerGaveUpStaysSlow) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kHangs}});
  const uint64_t ticket = world.Submit("a", 0, absl::Milliseconds(300));
  world.executor.RunFor(absl::Milliseconds(100));
  world.queue.Cancel(ticket);
  world.executor.RunUntilIdle();
  world.port.workers["b"] = Mood::kAnswers;
  world.Submit("a");
  EXPECT_EQ(world.Receivers().back(), "b");
  world.executor.RunFor(absl::Seconds(1));
  world.Submit("a");
  EXPECT_EQ(world.Receivers().back(), "a") << "for ten times as long as it was waited for";
}

TEST(ShardQueue, SlowWorkersServeWhereThereAreNoOthers) {
  World world({{"a", Mood::kHangs}});
  world.Submit("a");
  world.executor.RunFor(2 * ShardQueue::kSlowShard);
  world.Submit("a");
  EXPECT_THAT(world.Receivers(), ElementsAre("a", "a"));
}

TEST(ShardQueue, GivesUpAfterSomeAttemptsWithTheLastWorkersError) {
  World world({{"a", Mood::kIsFull}});
  world.Submit("a");
  world.executor.RunFor(absl::Seconds(10));
  EXPECT_THAT(world.port.sent, SizeIs(limits::kShardAttempts));
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_EQ(BoundOf(world.results[0].status()), "worker_shards");
  EXPECT_EQ(RetryAfterOf(world.results[0].status()), absl::Seconds(1));
  EXPECT_THAT(std::string(world.results[0].status().message()), HasSubstr("every worker that was asked"));
}

TEST(ShardQueue, SendsAShardWhoseResultIsNonsenseElsewhereAtOnce) {
  World world({{"bad", Mood::kSendsNonsense}, {"good", Mood::kAnswers}});
  ::testing::internal::CaptureStderr();
  InitLog("test", "info");
  world.Submit("bad");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(world.Receivers(), ElementsAre("bad", "good"));
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_TRUE(world.results[0].ok()) << world.results[0].status();
  EXPECT_THAT(log, AllOf(HasSubstr("warning"), HasSubstr("bad"), HasSubstr("job-aaaaaa"), HasSubstr("other shapes")));
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
}

TEST(ShardQueue, PassesOverAWorkerWhoseResultWasNonsenseForAWhile) {
  World world({{"a", Mood::kSendsNonsense}, {"b", Mood::kAnswers}});
  world.Submit("a");
  world.port.workers["a"] = Mood::kAnswers;
  world.Submit("a");
  EXPECT_EQ(world.Receivers().back(), "b");
  world.port.workers.erase("b");
  world.Submit("a");
  EXPECT_EQ(world.Receivers().back(), "a") << "there is no other one";
  world.port.workers["b"] = Mood::kAnswers;
  world.executor.RunFor(ShardQueue::kSuspendedFor);
  world.Submit("a");
  EXPECT_EQ(world.Receivers().back(), "a") << "it is tried again";
}

TEST(ShardQueue, NeverAsksAWorkerAgainForWhatItAnsweredWithNonsense) {
  World world({{"a", Mood::kSendsNonsense}, {"b", Mood::kIsFull}});
  world.Submit("a");
  world.executor.RunFor(absl::Seconds(10));
  EXPECT_THAT(world.Receivers(), ElementsAre("a", "b", "b"));
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_TRUE(absl::IsResourceExhausted(world.results[0].status())) << "which may pass";
}

TEST(ShardQueue, AWorkerWhoseDeviceFailsIsNoHoleThatAllShardsFallInto) {
  World world({{"broken", Mood::kIsBroken}, {"good", Mood::kAnswers}});
  for (int i = 0; i < 5; ++i) world.Submit("broken");
  EXPECT_THAT(world.Receivers(), ElementsAre("broken", "good", "good", "good", "good", "good"));
  ASSERT_THAT(world.results, SizeIs(5));
  for (const auto& result : world.results) EXPECT_TRUE(result.ok()) << result.status();
}

TEST(ShardQueue, TellsNobodyWhatBrokenWorkersSayOfThemselves) {
  World world({{"a", Mood::kIsBroken}, {"b", Mood::kIsBroken}});
  world.Submit("a");
  EXPECT_THAT(world.Receivers(), ElementsAre("a", "b"));
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_TRUE(absl::IsInternal(world.results[0].status()));
  EXPECT_EQ(ReasonOf(world.results[0].status()), "WORKER_FAILED");
  EXPECT_THAT(std::string(world.results[0].status().message()), Not(HasSubstr("CUDA")));
}

TEST(ShardQueue, ARefusalByAWorkerIsFinal) {
  World world({{"a", Mood::kRefuses}, {"b", Mood::kAnswers}});
  world.Submit("a");
  EXPECT_THAT(world.Receivers(), ElementsAre("a"));
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_THAT(std::string(world.results[0].status().message()), HasSubstr("another width"));
}

TEST(ShardQueue, FailsWhenOnlyThoseAreLeftThatAnsweredWithNonsense) {
  World world({{"a", Mood::kSendsNonsense}, {"b", Mood::kHangs}});
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) world.Submit("b");
  world.Submit("a");  // it waits for b, which is full
  EXPECT_THAT(world.results, IsEmpty());
  world.port.workers.erase("b");
  world.port.AnswerOpen("b");
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.port.sent, SizeIs(limits::kMaxShardsInFlightPerWorker + 1));
  EXPECT_THAT(world.results,
              Contains(ResultOf([](const auto& r) { return ReasonOf(r.status()); }, "BAD_SHARD_RESULT")));
}

TEST(ShardQueue, GivesUpAfterSomeAnswersOfNonsense) {
  World world({{"a", Mood::kSendsNonsense}});
  for (char id = 'b'; id < 'i'; ++id) world.port.workers[std::string(1, id)] = Mood::kSendsNonsense;
  world.Submit("a");
  EXPECT_THAT(world.Receivers(), ElementsAre("a", "b", "c"));
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_EQ(ReasonOf(world.results[0].status()), "BAD_SHARD_RESULT");
}

TEST(ShardQueue, NonsenseBesideASlowWorkerIsNotTheEndAndIsBoundedToo) {
  World world({{"a", Mood::kHangs}});
  for (char id = 'b'; id < 'i'; ++id) world.port.workers[std::string(1, id)] = Mood::kSendsNonsense;
  world.Submit("a");
  world.executor.RunFor(3 * ShardQueue::kSlowShard);
  EXPECT_THAT(world.port.sent, SizeIs(1 + limits::kShardAttempts));
  EXPECT_THAT(world.results, IsEmpty()) << "the slow one may answer yet";
  world.port.AnswerOpen("a");
  world.executor.RunUntilIdle();
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_TRUE(world.results[0].ok()) << world.results[0].status();
}

TEST(ShardQueue, SaysThatNoWorkerServes) {
  World world({});
  world.Submit();
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_EQ(ReasonOf(world.results[0].status()), "NO_SERVING_WORKER");
}

TEST(ShardQueue, SaysThatTheLastWorkerLeft) {
  World world({{"a", Mood::kHangs}});
  world.Submit();
  world.port.Break("a");
  world.executor.RunUntilIdle();
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_EQ(ReasonOf(world.results[0].status()), "NO_SERVING_WORKER");
}

TEST(ShardQueue, RefusesMoreThanMayWait) {
  World world({{"a", Mood::kHangs}});
  const size_t room = limits::kMaxWaitingShards + limits::kMaxShardsInFlightPerWorker;
  for (size_t i = 0; i < room; ++i) world.Submit();
  EXPECT_THAT(world.results, IsEmpty());
  world.Submit();
  ASSERT_THAT(world.results, SizeIs(1));
  EXPECT_EQ(ReasonOf(world.results[0].status()), "QUEUE_FULL");
}

TEST(ShardQueue, TellsTheWorkerOfACancelledShardAndNobodyElse) {
  World world({{"a", Mood::kHangs}});
  const uint64_t ticket = world.Submit();
  world.queue.Cancel(ticket);
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.port.cancelled, ElementsAre(world.port.sent[0].request.shard_id));
  EXPECT_THAT(world.results, IsEmpty());
  world.queue.Cancel(ticket);
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.port.cancelled, SizeIs(1));
}

TEST(ShardQueue, NeverSendsAShardThatWasCancelledAsItWaited) {
  World world({{"a", Mood::kHangs}});
  for (int i = 0; i < limits::kMaxShardsInFlightPerWorker; ++i) world.Submit();
  const uint64_t waiting = world.Submit("", 77);
  world.queue.Cancel(waiting);
  world.executor.RunUntilIdle();
  world.port.workers["a"] = Mood::kAnswers;
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.port.sent, SizeIs(limits::kMaxShardsInFlightPerWorker));
  EXPECT_THAT(world.port.cancelled, IsEmpty());
  EXPECT_THAT(world.done, AllOf(SizeIs(limits::kMaxShardsInFlightPerWorker), Each(0)));
}

TEST(ShardQueue, NeverSendsAShardThatWasCancelledBeforeItsRetry) {
  World world({{"a", Mood::kIsFull}});
  const uint64_t ticket = world.Submit();
  world.queue.Cancel(ticket);
  world.executor.RunFor(absl::Seconds(10));
  EXPECT_THAT(world.port.sent, SizeIs(1));
  EXPECT_THAT(world.results, IsEmpty());
}

TEST(ShardQueue, ListsTheWorkersById) {
  World world({{"b", Mood::kHangs}, {"a", Mood::kHangs}});
  EXPECT_THAT(world.queue.WorkerIds(""), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace chainfleet
