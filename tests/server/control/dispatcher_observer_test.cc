// Tests the events that the ControlObserver gets.
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Figures final : ControlObserver {
  void OnGrant(absl::Duration waited) override { waits.push_back(waited); }
  void OnLeaseEnd(LeaseOutcome outcome) override { ends.push_back(outcome); }
  void OnChainEnd(ChainState state) override { chain_ends.push_back(state); }
  void OnWorkerSilent() override { ++silent; }
  void OnPreempt(const ChainId& chain) override { preempted.push_back(chain); }
  void OnCommit(const CommitFigures& figures) override { commits.push_back(figures); }

  std::vector<absl::Duration> waits;
  std::vector<LeaseOutcome> ends;
  std::vector<ChainState> chain_ends;
  int silent = 0;
  std::vector<ChainId> preempted;
  std::vector<CommitFigures> commits;
};

class DispatcherFigures : public DispatcherTest {
 protected:
  DispatcherFigures() {
    observer_ = &figures_;
    Start();
  }
  Figures figures_;
};

TEST_F(DispatcherFigures, AChainWaitsFromItsJobToItsLease) {
  Create("job", 1);
  executor_.RunFor(absl::Seconds(42));
  FakeWorker worker("w1");
  Sync(&worker);
  ASSERT_EQ(figures_.waits.size(), 1u);
  EXPECT_GE(figures_.waits[0], absl::Seconds(42));
  EXPECT_LT(figures_.waits[0], absl::Seconds(42) + limits::kSyncInterval);
}

TEST_F(DispatcherFigures, AChainThatWasPausedWaitsFromItsResume) {
  const std::string job = Create("job", 1);
  ASSERT_TRUE(SetIntent(job, JobIntent::kPause).ok());
  executor_.RunFor(absl::Hours(1));
  ASSERT_TRUE(SetIntent(job, JobIntent::kRun).ok());
  FakeWorker worker("w1");
  Sync(&worker);
  ASSERT_EQ(figures_.waits.size(), 1u);
  EXPECT_LT(figures_.waits[0], absl::Minutes(1));
}

TEST_F(DispatcherFigures, ALeaseThatExpiresWasLostAndOneGivenBackWasNot) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  GiveBack(&worker, chain, ReleasedChain::Why::kFailed, "out of luck");
  Sync(&worker);
  executor_.RunFor(2 * limits::kAttemptDelay);
  Sync(&worker);
  Sync(&worker);
  ASSERT_TRUE(worker.chains.contains(chain));
  executor_.RunFor(kTermAndGrace + absl::Seconds(1));
  EXPECT_THAT(figures_.ends, ElementsAre(LeaseOutcome::kGivenBack, LeaseOutcome::kLost));
  EXPECT_EQ(figures_.waits.size(), 2u);
}

TEST_F(DispatcherFigures, AnIdleWorkerThatFallsSilentIsLostOnceAndOneThatDrainedIsNot) {
  FakeWorker worker("w1"), drained("w2");
  drained.draining = true;
  Sync(&worker);
  Sync(&drained);
  for (int scrape = 0; scrape < 3; ++scrape) {
    dispatcher_->Summary(10);
    EXPECT_EQ(figures_.silent, scrape == 0 ? 0 : 1);
    executor_.RunFor(kTermAndGrace + absl::Seconds(1));
  }
  Sync(&worker);
  executor_.RunFor(kTermAndGrace + absl::Seconds(1));
  dispatcher_->Summary(10);
  EXPECT_EQ(figures_.silent, 2);
}

class DispatcherEnds : public DispatcherFigures {
 protected:
  void End(ReleasedChain::Why why) {
    GiveBack(&worker_, chain_, why);
    Sync(&worker_);
  }
  FakeWorker worker_{"w1"};
  const ChainId chain_ = LeaseOne(&worker_);
};

TEST_F(DispatcherEnds, LostWithASilentWorker) {
  executor_.RunFor(kTermAndGrace + absl::Seconds(1));
  EXPECT_THAT(figures_.ends, ElementsAre(LeaseOutcome::kLost));
}

TEST_F(DispatcherEnds, LostWithARestartedWorker) {
  worker_.Restart();
  Sync(&worker_);
  EXPECT_THAT(figures_.ends, ElementsAre(LeaseOutcome::kLost));
}

TEST_F(DispatcherEnds, HungAsTheWorkerSays) {
  End(ReleasedChain::Why::kHung);
  EXPECT_THAT(figures_.ends, ElementsAre(LeaseOutcome::kHung));
}

TEST_F(DispatcherEnds, GivenBackByAWorkerThatFailed) {
  End(ReleasedChain::Why::kFailed);
  EXPECT_THAT(figures_.ends, ElementsAre(LeaseOutcome::kGivenBack));
}

TEST_F(DispatcherEnds, HopelessAsTheWorkerSaysOfTheJob) {
  End(ReleasedChain::Why::kInvalid);
  EXPECT_THAT(figures_.ends, ElementsAre(LeaseOutcome::kHopeless));
}

TEST_F(DispatcherEnds, OrderedByAPause) {
  ASSERT_TRUE(SetIntent(chain_.job, JobIntent::kPause).ok());
  End(ReleasedChain::Why::kStopped);
  EXPECT_THAT(figures_.ends, ElementsAre(LeaseOutcome::kOrdered));
}

TEST_F(DispatcherFigures, ReportsTheEndOfAChainOnce) {
  FakeWorker worker("w1");
  const std::string job = Create("job", 4);
  Sync(&worker);
  Sync(&worker);
  ProgressCommit last = worker.NextCommit({job, 0});
  last.ends_as = ChainState::kDiverged;
  ASSERT_TRUE(Commit(worker, last).ok());
  ASSERT_TRUE(Commit(worker, last).ok());
  worker.Took(last);
  Advance(&worker, {job, 1}, ChainState::kSucceeded);
  GiveBack(&worker, {job, 2}, ReleasedChain::Why::kInvalid);
  Sync(&worker);
  EXPECT_THAT(figures_.chain_ends, ElementsAre(ChainState::kDiverged, ChainState::kSucceeded, ChainState::kFailed));
  ASSERT_TRUE(SetIntent(job, JobIntent::kCancel).ok());
  ASSERT_TRUE(SetIntent(job, JobIntent::kDelete).ok());
  executor_.RunFor(kTermAndGrace);
  EXPECT_THAT(figures_.chain_ends,
              ElementsAre(ChainState::kDiverged, ChainState::kSucceeded, ChainState::kFailed, ChainState::kCancelled));
}

TEST_F(DispatcherFigures, ACommitIsTakenReplayedOrRefused) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit commit = worker.NextCommit(chain);
  ASSERT_TRUE(Commit(worker, commit).ok());
  ASSERT_TRUE(Commit(worker, commit).ok());
  worker.Took(commit);
  ProgressCommit fenced = worker.NextCommit(chain);
  ++fenced.lease_epoch;
  EXPECT_FALSE(Commit(worker, fenced).ok());
  ASSERT_EQ(figures_.commits.size(), 3u);
  EXPECT_FALSE(figures_.commits[0].replayed);
  EXPECT_EQ(figures_.commits[0].refused, "");
  EXPECT_EQ(figures_.commits[0].draws, 1);
  const int64_t bytes =
      commit.segment->object.size_bytes + static_cast<int64_t>(commit.resume_point.inline_bytes.size());
  EXPECT_EQ(figures_.commits[0].bytes, bytes);
  EXPECT_TRUE(figures_.commits[1].replayed);
  EXPECT_EQ(figures_.commits[2].refused, "LEASE_FENCED");
}

TEST_F(DispatcherFigures, ReportsAPreemptionOnce) {
  FakeWorker worker("w1", 1);
  const ChainId low = LeaseOne(&worker);
  EXPECT_THAT(figures_.preempted, IsEmpty());
  JobSpec high = SmallSpec("high", 1);
  high.scheduling.priority = Priority::kHigh;
  ASSERT_TRUE(TryCreate(high).ok());
  for (int round = 0; round < 3; ++round) Sync(&worker);
  EXPECT_THAT(figures_.preempted, ElementsAre(low));
}

}  // namespace
}  // namespace chainfleet
