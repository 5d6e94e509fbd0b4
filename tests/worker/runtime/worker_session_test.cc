#include "worker/runtime/session/worker_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "core/store/draw_codec/sha256.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/worker_fixture.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WorkerSessionTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  FakeBatchScript script_;
  FakeCoordinator server_{&executor_};
  FakeWorker worker_{&server_, &executor_, &clock_, &script_};
  const ChainId chain_{"job-a", 0};

  void Start(int32_t chains = 1) {
    server_.AddChains(AnalyticPlan("job-a", chains), chains);
    worker_.session.Start();
    executor_.RunUntilIdle();
  }
  bool MayStep(int64_t epoch = 1) { return worker_.held.Visit({{chain_, epoch}}, absl::ZeroDuration())[0].may_step; }
};

TEST_F(WorkerSessionTest, TakesAGrantAndListsItAtOnce) {
  Start();
  ASSERT_THAT(server_.requests, SizeIs(2));
  ASSERT_THAT(server_.requests[1].chains, SizeIs(1));
  EXPECT_EQ(server_.requests[1].chains[0].lease_epoch, 1);
  EXPECT_GT(server_.requests[1].seq, server_.requests[0].seq);
  EXPECT_TRUE(MayStep());
}

TEST_F(WorkerSessionTest, AppliesARepeatedGrantOnce) {
  Start();
  worker_.held.TakeNew();
  server_.chains[chain_].listed = false;
  const Grant grant{chain_, 1, server_.chains[chain_].plan, {}};
  EXPECT_EQ(worker_.held.Add({grant, "store"}, LeaseDeadline()), HeldChains::Added::kRepeat);
  EXPECT_THAT(worker_.held.TakeNew(), IsEmpty());
}

TEST_F(WorkerSessionTest, DoesNotTakeUpAnEndedEpochWhoseGrantCrossed) {
  Start();
  worker_.held.End({chain_, 1});
  EXPECT_EQ(worker_.held.Add({{chain_, 1, server_.chains[chain_].plan, {}}, "store"}, LeaseDeadline()),
            HeldChains::Added::kStale);
  EXPECT_EQ(worker_.held.Add({{chain_, 2, server_.chains[chain_].plan, {}}, "store"}, LeaseDeadline()),
            HeldChains::Added::kNew);
}

TEST_F(WorkerSessionTest, RenewsLeasesWhileTheServerKeepsThem) {
  Start();
  executor_.RunFor(absl::Minutes(1));
  EXPECT_TRUE(MayStep());
  // Makes one call each next_sync_in.
  EXPECT_LE(server_.requests.size(), 15u);
}

TEST_F(WorkerSessionTest, StopsSteppingButKeepsTheChainWhenTheServerIsAway) {
  Start();
  server_.sync_failures.assign(1000, absl::UnavailableError("down"));
  executor_.RunFor(absl::Seconds(12));
  EXPECT_TRUE(MayStep());
  executor_.RunFor(absl::Seconds(6));
  EXPECT_FALSE(MayStep());
  EXPECT_TRUE(worker_.held.Holds({chain_, 1}));
  EXPECT_FALSE(worker_.session.connected());
  server_.sync_failures.clear();
  executor_.RunFor(limits::kLeaseTtl / 6);  // part of the term of a server that is back
  EXPECT_TRUE(MayStep());
  EXPECT_TRUE(worker_.session.connected());
}

TEST_F(WorkerSessionTest, BacksOffFromAnUnreachableServerButNeverGivesUp) {
  server_.sync_failures.assign(100000, absl::UnavailableError("down"));
  Start();
  executor_.RunFor(absl::Minutes(10));
  EXPECT_GT(server_.requests.size(), 100u);
  EXPECT_LT(server_.requests.size(), 600u);
  EXPECT_TRUE(worker_.session.status().ok());
}

TEST_F(WorkerSessionTest, IgnoresRepliesOfAFencedCoordinator) {
  server_.generation = 5;
  Start();
  server_.generation = 4;
  server_.stop_orders[chain_] = StopOrder::How::kFenced;
  executor_.RunFor(absl::Seconds(20));
  EXPECT_TRUE(worker_.held.Holds({chain_, 1}));
  EXPECT_FALSE(MayStep());
  server_.generation = 6;
  executor_.RunFor(absl::Seconds(20));
  EXPECT_FALSE(worker_.held.Holds({chain_, 1}));
}

TEST_F(WorkerSessionTest, DropsItsChainsWhenTheStoreIsAnother) {
  Start();
  server_.grants_enabled = false;
  server_.keep_none.insert(chain_);
  server_.store_incarnation = "restored";
  executor_.RunFor(absl::Seconds(12));
  EXPECT_EQ(worker_.held.num_chains(), 0);
  EXPECT_EQ(server_.requests.back().store_incarnation, "restored");
}

// A restored store begins with the backup's generation, a new one with 1.
TEST_F(WorkerSessionTest, TakesAStoreOfALowerGeneration) {
  server_.generation = 5;
  Start();
  server_.grants_enabled = false;
  server_.keep_none.insert(chain_);
  server_.store_incarnation = "restored";
  server_.generation = 1;
  executor_.RunFor(absl::Seconds(12));
  EXPECT_EQ(worker_.held.num_chains(), 0);
  EXPECT_EQ(server_.requests.back().store_incarnation, "restored");
}

TEST_F(WorkerSessionTest, ReturnsToAFormerStoreOnlyAtAHigherGeneration) {
  server_.generation = 5;
  Start();
  const std::string first = std::exchange(server_.store_incarnation, "restored");
  server_.generation = 2;
  executor_.RunFor(absl::Seconds(12));
  server_.store_incarnation = first;
  server_.generation = 5;  // a late reply of the former coordinator
  executor_.RunFor(absl::Seconds(20));
  EXPECT_EQ(server_.requests.back().store_incarnation, "restored");
  server_.generation = 6;
  executor_.RunFor(absl::Seconds(20));
  EXPECT_EQ(server_.requests.back().store_incarnation, first);
}

TEST_F(WorkerSessionTest, DropsAFencedChain) {
  Start();
  server_.FenceByGrantElsewhere(chain_);
  executor_.RunFor(absl::Seconds(6));
  EXPECT_EQ(worker_.held.num_chains(), 0);
  EXPECT_THAT(server_.released, IsEmpty());
}

TEST_F(WorkerSessionTest, EndsForGoodOnAnotherProtocolVersion) {
  server_.sync_failures.push_back(
      WithReason(absl::FailedPreconditionError("server speaks 2, worker speaks 1"), "VERSION_MISMATCH"));
  Start();
  executor_.RunFor(absl::Minutes(1));
  EXPECT_EQ(ReasonOf(worker_.session.status()), "VERSION_MISMATCH");
  EXPECT_THAT(server_.requests, SizeIs(1));
}

class WorkerSessionRefused : public WorkerSessionTest, public ::testing::WithParamInterface<absl::StatusCode> {};

TEST_P(WorkerSessionRefused, EndsForGood) {
  server_.sync_failures.assign(5, absl::Status(GetParam(), "no"));
  Start();
  executor_.RunFor(absl::Minutes(1));
  EXPECT_EQ(worker_.session.status().code(), GetParam());
  EXPECT_THAT(server_.requests, SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Token, WorkerSessionRefused,
                         ::testing::Values(absl::StatusCode::kUnauthenticated, absl::StatusCode::kPermissionDenied));

TEST_F(WorkerSessionTest, RepeatsAReleaseUntilACallCarriedIt) {
  Start();
  server_.grants_enabled = false;
  server_.sync_failures.assign(2, absl::UnavailableError("down"));
  worker_.held.Release({chain_, 1}, ReleasedChain::Why::kFailed, "bad");
  executor_.RunFor(absl::Seconds(2));
  ASSERT_THAT(server_.released, SizeIs(1));
  EXPECT_EQ(server_.released[0].reason, "bad");
  EXPECT_TRUE(worker_.held.quiet());
  executor_.RunFor(absl::Seconds(10));
  EXPECT_THAT(server_.requests.back().released, IsEmpty());
}

TEST_F(WorkerSessionTest, GivesUpAChainTheDeviceNoLongerVisits) {
  Start();
  worker_.held.TakeNew();
  executor_.RunFor(absl::Minutes(4));
  EXPECT_TRUE(worker_.held.Holds({chain_, 1}));
  server_.grants_enabled = false;
  executor_.RunFor(absl::Minutes(1) + absl::Seconds(10));
  ASSERT_THAT(server_.released, SizeIs(1));
  EXPECT_EQ(server_.released[0].why, ReleasedChain::Why::kHung);
  // The worker takes no more chains until the device loop runs again.
  EXPECT_EQ(server_.requests.back().devices[0].chain_slots, 0);
  worker_.device.RunOnce();
  executor_.RunFor(absl::Seconds(6));
  EXPECT_EQ(server_.requests.back().devices[0].chain_slots, 4);
}

TEST_F(WorkerSessionTest, AChainHangsAfterTheBoundOfItsDevice) {
  HeldChains on_cpu(&clock_, limits::kHungCpuStepFloor);
  on_cpu.Add({{chain_, 1, AnalyticPlan("job-a", 1), {}}, "store"}, LeaseDeadline());
  on_cpu.TakeNew();
  clock_.Advance(absl::Minutes(59));
  EXPECT_THAT(on_cpu.ReleaseHung(), IsEmpty()) << "a step of a large network may take this long";
  clock_.Advance(absl::Minutes(2));
  EXPECT_THAT(on_cpu.ReleaseHung(), SizeIs(1));
}

TEST_F(WorkerSessionTest, EndsWithinTwoSecondsOnceAModuleThatDoesNotEndIsCancelled) {
  auto plan = std::make_shared<JobPlan>(*AnalyticPlan("job-b", 1));
  plan->module = StoredModel{.name = "endless"};
  server_.AddChains(plan, 1);
  Start();
  worker_.held.TakeNew();  // the loop never runs again
  executor_.RunFor(absl::Seconds(10));
  EXPECT_FALSE(worker_.session.stuck());
  server_.grants_enabled = false;
  const size_t before = server_.released.size();
  server_.stop_orders[{"job-b", 0}] = StopOrder::How::kDrop;
  worker_.session.Wake();
  executor_.RunFor(absl::Milliseconds(900));
  EXPECT_FALSE(worker_.session.stuck());
  executor_.RunFor(absl::Milliseconds(1100));
  ASSERT_EQ(server_.released.size(), before + 1) << "the other chain, long before its own bound of five minutes";
  EXPECT_EQ(server_.released.back().why, ReleasedChain::Why::kHung);
  EXPECT_TRUE(worker_.session.stuck());
}

TEST_F(WorkerSessionTest, ACancelledChainEndsNoProcessWhoseLoopContinues) {
  auto plan = std::make_shared<JobPlan>(*AnalyticPlan("job-b", 1));
  plan->module = StoredModel{.name = "slow"};
  server_.AddChains(plan, 1);
  Start();
  worker_.held.TakeNew();
  worker_.held.Drop({{"job-b", 0}, 1});
  worker_.device.RunOnce();
  executor_.RunFor(absl::Minutes(2));
  EXPECT_FALSE(worker_.session.stuck());
}

TEST_F(WorkerSessionTest, ARefusedModuleIsTheJobsFault) {
  const std::string bytes = "a module";
  server_.blobs["module"] = bytes;
  auto plan = std::make_shared<JobPlan>(*AnalyticPlan("job-b", 1));
  plan->module = StoredModel{.name = "mine", .object = {"module", std::ssize(bytes), Sha256Hex(bytes)}};
  server_.AddChains(plan, 1);
  worker_.module_check = absl::InvalidArgumentError("it opens files");
  worker_.session.Start();
  RunWorker(&worker_, &executor_, &clock_, absl::Seconds(5));
  ASSERT_THAT(server_.released, SizeIs(1));
  EXPECT_EQ(server_.released[0].why, ReleasedChain::Why::kInvalid);
  EXPECT_EQ(server_.released[0].reason, "model mine: it opens files");
  EXPECT_EQ(script_.steps_taken, 0);
}

TEST_F(WorkerSessionTest, GivesSlowStepsTwentyTimesTheirTime) {
  script_.on_step = [this](int32_t, int64_t) {
    executor_.RunFor(absl::Seconds(20));
  };  // the lease is renewed meanwhile
  Start();
  while (script_.steps_taken < 2) {  // the bound of the second step follows from the first
    worker_.device.RunOnce();
    executor_.RunUntilIdle();
  }
  executor_.RunFor(absl::Seconds(360));  // and that step took 20
  EXPECT_TRUE(worker_.held.Holds({chain_, 1})) << "beyond the bound of quick steps";
  server_.grants_enabled = false;
  executor_.RunFor(absl::Seconds(40));
  ASSERT_THAT(server_.released, SizeIs(1));
  EXPECT_EQ(server_.released[0].why, ReleasedChain::Why::kHung);
}

TEST_F(WorkerSessionTest, RefusesAGrantThatCrossesWithADrain) {
  server_.AddChains(AnalyticPlan("job-a", 1), 1);
  worker_.session.Start();
  ASSERT_TRUE(executor_.RunOne());  // the first call is sent, without the drain
  worker_.session.Drain();
  executor_.RunUntilIdle();
  ASSERT_THAT(server_.released, SizeIs(1));
  EXPECT_EQ(server_.released[0].why, ReleasedChain::Why::kRefused);
  EXPECT_TRUE(server_.requests.back().draining);
  EXPECT_TRUE(worker_.session.drained());
}

TEST_F(WorkerSessionTest, ADrainEndsOnlyOnceTheServerKnowsOfIt) {
  Start();
  worker_.session.Drain();
  worker_.held.End({chain_, 1});  // committed as handed back before the call that says so
  EXPECT_FALSE(worker_.session.drained()) << "the server may grant the chain to this worker again";
  executor_.RunUntilIdle();
  EXPECT_TRUE(server_.requests.back().draining);
  EXPECT_TRUE(worker_.session.drained());
}

TEST_F(WorkerSessionTest, AnOperatorsDrainHandsBackAndKeepsTheProcess) {
  Start();
  server_.drain = true;
  executor_.RunFor(limits::kSyncInterval);
  const size_t told = server_.requests.size();
  EXPECT_TRUE(server_.requests.back().draining) << "the call after the order, at once";
  EXPECT_TRUE(worker_.held.Visit({{chain_, 1}}, absl::ZeroDuration())[0].hand_back);
  EXPECT_FALSE(worker_.session.drained());
  worker_.held.End({chain_, 1});
  server_.drain = false;  // another coordinator leads, which does not know of the drain
  server_.generation = 2;
  executor_.RunFor(2 * limits::kSyncInterval);
  EXPECT_GT(server_.requests.size(), told);
  EXPECT_TRUE(server_.requests.back().draining);
  EXPECT_FALSE(worker_.session.drained()) << "the process stays, idle";
  worker_.session.Drain();
  EXPECT_TRUE(worker_.session.drained()) << "a signal ends it all the same";
}

TEST_F(WorkerSessionTest, RefusesAGrantThatCrossesWithAnOperatorsDrain) {
  server_.drain = true;
  Start();
  ASSERT_THAT(server_.released, SizeIs(1));
  EXPECT_EQ(server_.released[0].why, ReleasedChain::Why::kRefused);
}

TEST_F(WorkerSessionTest, AsksAgainAtOnceWhenToldTo) {
  Start();
  server_.next_sync_in = absl::ZeroDuration();
  executor_.RunFor(limits::kSyncInterval);
  const size_t before = server_.requests.size();
  executor_.RunFor(absl::Seconds(1));
  EXPECT_GE(server_.requests.size(), before + 10);
  EXPECT_LE(server_.requests.size(), before + 50) << "a broken server is not flooded";
}

TEST_F(WorkerSessionTest, NewsDoesNotWaitForACallThatTheServerHolds) {
  Start();
  worker_.held.TakeNew();
  server_.holds = true;
  executor_.RunFor(limits::kSyncInterval);
  server_.holds = server_.grants_enabled = false;
  const size_t before = server_.requests.size();
  worker_.held.Release({chain_, 1}, ReleasedChain::Why::kFailed, "it broke");
  executor_.RunFor(absl::Milliseconds(100));
  ASSERT_EQ(server_.requests.size(), before + 1);
  EXPECT_THAT(server_.requests.back().released, SizeIs(1));
  EXPECT_THAT(server_.released, SizeIs(1));
}

TEST_F(WorkerSessionTest, ReplyThatWasOvertakenIsIgnored) {
  Start();
  worker_.held.TakeNew();
  server_.holds = true;
  executor_.RunFor(limits::kSyncInterval);
  server_.holds = false;
  worker_.session.Wake();
  executor_.RunFor(absl::Milliseconds(100));
  SynchronizeReply late;
  late.generation = server_.generation;
  late.store_incarnation = server_.store_incarnation;
  late.lease_ttl = limits::kLeaseTtl;
  late.stop = {{chain_, 1, StopOrder::How::kFenced}};
  server_.AnswerHeld(late);
  executor_.RunUntilIdle();
  EXPECT_TRUE(worker_.held.Holds({chain_, 1}));
}

TEST_F(WorkerSessionTest, EndOfAnOvertakenCallIsNoOutage) {
  Start();
  server_.holds = true;
  executor_.RunFor(limits::kSyncInterval);
  worker_.session.Wake();
  executor_.RunFor(absl::Milliseconds(100));
  server_.AnswerHeld(WithReason(absl::AbortedError("a newer call of this worker came"), "STALE_SEQ"));
  executor_.RunUntilIdle();
  EXPECT_TRUE(worker_.session.connected());
  const size_t before = server_.requests.size();
  executor_.RunFor(limits::kSyncInterval);
  EXPECT_EQ(server_.requests.size(), before) << "the newer call is held";
}

TEST_F(WorkerSessionTest, HasNoMoreThanTwoCallsInFlight) {
  Start();
  server_.holds = true;
  executor_.RunFor(limits::kSyncInterval);
  const size_t before = server_.requests.size();
  for (int i = 0; i < 10; ++i) {
    worker_.session.Wake();
    executor_.RunFor(absl::Milliseconds(100));
  }
  EXPECT_EQ(server_.requests.size(), before + 1);
}

TEST_F(WorkerSessionTest, KeepsOneCallInFlight) {
  Start(3);
  const size_t before = server_.requests.size();
  for (int i = 0; i < 10; ++i) worker_.session.Wake();
  executor_.RunUntilIdle();
  EXPECT_LE(server_.requests.size(), before + 2);
}

}  // namespace
}  // namespace chainfleet
