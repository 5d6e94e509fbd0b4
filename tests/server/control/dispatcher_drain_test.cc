// Tests drains by an operator: their duration, and the time that the worker has.
#include "server/control/fleet.h"
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class DispatcherDrain : public DispatcherTest, public ControlObserver {
 protected:
  DispatcherDrain() {
    observer_ = this;
    Start();
  }
  void OnLeaseEnd(LeaseOutcome outcome) override { ended_.push_back(outcome); }
  // Calls at the usual pace and applies each reply.
  void SyncFor(FakeWorker* worker, absl::Duration time) {
    for (const absl::Duration end = clock_.Monotonic() + time; clock_.Monotonic() < end;) {
      Sync(worker);
      executor_.RunFor(absl::Seconds(2));
    }
  }

  std::vector<LeaseOutcome> ended_;
};

TEST_F(DispatcherDrain, SurvivesATakeover) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ASSERT_TRUE(dispatcher_->DrainWorker("w1").ok());
  EXPECT_TRUE(Sync(&worker).drain);
  Advance(&worker, chain, ChainState::kPending);
  Start();
  executor_.RunFor(absl::Seconds(5));
  SyncFor(&worker, absl::Minutes(1));
  EXPECT_TRUE(worker.chains.empty());
  ASSERT_EQ(dispatcher_->ListWorkers().size(), 1u);
  EXPECT_TRUE(dispatcher_->ListWorkers().front().draining);
  worker.Restart();
  SyncFor(&worker, absl::Seconds(4));
  EXPECT_TRUE(worker.chains.contains(chain)) << "a process that was started again works";
}

TEST_F(DispatcherDrain, IsToldToAnIdleWorkerAtOnce) {
  FakeWorker worker("w1");
  const auto held = Send(&worker);
  ASSERT_FALSE(held.has());
  ASSERT_TRUE(dispatcher_->DrainWorker("w1").ok());
  executor_.RunUntilIdle();
  ASSERT_TRUE(held.has());
  EXPECT_TRUE(held.get()->drain);
  worker.Take(*held.get());
  EXPECT_FALSE(Send(&worker).has()) << "it has said that it drains: its calls are held like those of others";
}

TEST_F(DispatcherDrain, AWorkerThatDoesNotKnowTheOrderIsNotAskedWithoutPause) {
  FakeWorker worker("w1");
  worker.heeds_drain = false;
  Sync(&worker);
  ASSERT_TRUE(dispatcher_->DrainWorker("w1").ok());
  EXPECT_EQ(Sync(&worker).next_sync_in, limits::kSyncInterval);
  Create("job", 1);
  SyncFor(&worker, absl::Seconds(20));
  EXPECT_TRUE(worker.chains.empty());
}

TEST_F(DispatcherDrain, ChainsHeldAtTheDeadlineMoveWithoutAnAttempt) {
  FakeWorker worker("w1"), other("w2");
  const ChainId chain = LeaseOne(&worker);
  EXPECT_TRUE(absl::IsInvalidArgument(dispatcher_->DrainWorker("w1", -absl::Seconds(1)).status()));
  ASSERT_TRUE(dispatcher_->DrainWorker("w1", absl::Seconds(30)).ok());
  SyncFor(&worker, absl::Seconds(28));
  EXPECT_EQ(dispatcher_->ListWorkers().front().chains, 1) << "it renews, and has time";
  SyncFor(&worker, absl::Seconds(4));
  EXPECT_EQ(dispatcher_->ListWorkers().front().chains, 0);
  EXPECT_THAT(ended_, ElementsAre(LeaseOutcome::kOrdered));
  EXPECT_EQ(Chain(chain).attempts, 0);
  SyncFor(&other, absl::Seconds(4));
  ASSERT_TRUE(other.chains.contains(chain));
  EXPECT_EQ(other.chains.at(chain).epoch, 2);
  Sync(&worker);
  EXPECT_THAT(worker.stops, ElementsAre(Pair(chain, StopOrder::How::kFenced)));
}

TEST_F(DispatcherDrain, TheLaterDeadlineCounts) {
  FakeWorker worker("w1");
  LeaseOne(&worker);
  ASSERT_TRUE(dispatcher_->DrainWorker("w1", absl::Seconds(10)).ok());
  ASSERT_TRUE(dispatcher_->DrainWorker("w1", absl::Minutes(1)).ok());
  SyncFor(&worker, absl::Seconds(50));
  EXPECT_EQ(dispatcher_->ListWorkers().front().chains, 1);
  ASSERT_TRUE(dispatcher_->DrainWorker("w1", absl::ZeroDuration()).ok());
  SyncFor(&worker, absl::Seconds(2));
  EXPECT_EQ(dispatcher_->ListWorkers().front().chains, 0);
}

TEST_F(DispatcherDrain, IsOverOnceForAWorkerThatStays) {
  FakeWorker worker("w1");
  Sync(&worker);
  ASSERT_TRUE(dispatcher_->DrainWorker("w1", absl::Seconds(10)).ok());
  SyncFor(&worker, absl::Minutes(1));
  ASSERT_FALSE(Send(&worker).has());
  clock_.Advance(2 * limits::kPolicyInterval);
  EXPECT_EQ(executor_.RunUntilIdle(), 0) << "nothing to do before its call is to be answered";
}

TEST_F(DispatcherDrain, IsBoundedAfterATakeoverToo) {
  FakeWorker worker("w1");
  LeaseOne(&worker);
  ASSERT_TRUE(dispatcher_->DrainWorker("w1", absl::Minutes(1)).ok());
  Sync(&worker);
  Start();
  SyncFor(&worker, kDrainLimit - absl::Seconds(10));
  EXPECT_EQ(dispatcher_->ListWorkers().front().chains, 1);
  SyncFor(&worker, absl::Seconds(20));
  EXPECT_EQ(dispatcher_->ListWorkers().front().chains, 0);
  EXPECT_THAT(ended_, ElementsAre(LeaseOutcome::kOrdered));
}

}  // namespace
}  // namespace chainfleet
