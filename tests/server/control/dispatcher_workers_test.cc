// Synchronize, grants and stop orders.
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/content_limits.h"
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class DispatcherWorkers : public DispatcherTest {};

TEST_F(DispatcherWorkers, RefusesAnotherProtocolWithBothNumbers) {
  FakeWorker worker("w1");
  worker.protocol_version = 99;
  const absl::Status status = Send(&worker).get().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(ReasonOf(status), "VERSION_MISMATCH");
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("99"), HasSubstr(std::to_string(kProtocolVersion))));
  worker.protocol_version = kOldestProtocolVersion - 1;
  EXPECT_EQ(ReasonOf(Send(&worker).get().status()), "VERSION_MISMATCH");
}

TEST_F(DispatcherWorkers, ReplyCarriesGenerationAndIncarnation) {
  FakeWorker worker("w1");
  const SynchronizeReply reply = Sync(&worker);
  EXPECT_EQ(reply.generation, store_->generation());
  EXPECT_EQ(reply.store_incarnation, "incarnation-1");
  EXPECT_EQ(reply.lease_ttl, limits::kLeaseTtl);
}

TEST_F(DispatcherWorkers, IdleWorkersCallIsHeldAndAnsweredAtTheGrant) {
  FakeWorker worker("w1");
  Sync(&worker);
  const auto held = Send(&worker);
  executor_.RunFor(absl::Seconds(2));
  EXPECT_FALSE(held.has());
  const std::string job = Create("job", 2);
  executor_.RunUntilIdle();
  ASSERT_TRUE(held.has());
  EXPECT_EQ(held.get()->grants.size(), 2u) << "all grants of one decision in one reply";
}

TEST_F(DispatcherWorkers, HeldCallEndsAfterHalfASyncIntervalAndTheNextIsToComeAtOnce) {
  FakeWorker worker("w1");
  const auto held = Send(&worker);
  executor_.RunFor(limits::kSyncInterval / 2 - absl::Milliseconds(1));
  EXPECT_FALSE(held.has());
  executor_.RunFor(absl::Milliseconds(60));
  ASSERT_TRUE(held.get().ok());
  EXPECT_EQ(held.get()->next_sync_in, absl::ZeroDuration());
}

TEST_F(DispatcherWorkers, CallHeldWhileTheServerWasStoppedForLongIsAnswered) {
  FakeWorker worker("w1", 1), idle("w2");
  LeaseOne(&worker);
  Create("waits", 8);
  idle.draining = true;
  Sync(&idle);
  const auto held = Send(&idle);
  executor_.RunUntilIdle();
  clock_.Advance(absl::Minutes(11));
  FakeWorker other("w3");
  Send(&other);
  executor_.RunUntilIdle();
  EXPECT_TRUE(held.get().ok()) << held.get().status();
}

TEST_F(DispatcherWorkers, WorkersThatLeftAreForgottenThoughNothingWaits) {
  FakeWorker worker("w1"), other("w2");
  Sync(&worker);
  executor_.RunFor(absl::Minutes(11));
  Sync(&other);
  EXPECT_EQ(dispatcher_->ListWorkers().size(), 1u);
}

TEST_F(DispatcherWorkers, FullWorkerIsAnsweredAtOnce) {
  FakeWorker worker("w1", 1);
  const ChainId chain = LeaseOne(&worker);
  const auto answer = Send(&worker);
  ASSERT_TRUE(answer.has());
  EXPECT_THAT(answer.get()->keep, ElementsAre(chain));
  EXPECT_EQ(answer.get()->next_sync_in, limits::kSyncInterval);
}

TEST_F(DispatcherWorkers, BusyWorkerWithRoomIsHeldAndAnsweredAtTheGrant) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const auto held = Send(&worker);
  executor_.RunFor(absl::Seconds(1));
  EXPECT_FALSE(held.has());
  Create("second", 2);
  executor_.RunUntilIdle();
  ASSERT_TRUE(held.has());
  EXPECT_EQ(held.get()->grants.size(), 2u);
  EXPECT_THAT(held.get()->keep, ElementsAre(chain));
}

TEST_F(DispatcherWorkers, WorkerHeldAgainAndAgainKeepsItsLeasesOnItsOwnClock) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const auto deadline_of = [](absl::Duration sent_at) { return sent_at + limits::kLeaseTtl - limits::kLeaseMargin; };
  absl::Duration deadline = deadline_of(clock_.Monotonic());
  for (int calls = 0; calls < 10; ++calls) {
    const absl::Duration sent_at = clock_.Monotonic();
    const auto held = Send(&worker);
    EXPECT_FALSE(held.has());
    executor_.RunFor(limits::kSyncInterval / 2);
    ASSERT_THAT(held.get()->keep, ElementsAre(chain));
    EXPECT_EQ(held.get()->next_sync_in, absl::ZeroDuration());
    // A hold of a third of the term could lose one call before the next comes.
    EXPECT_LT(clock_.Monotonic() + limits::kLeaseTtl / 3, deadline);
    deadline = deadline_of(sent_at);
  }
}

TEST_F(DispatcherWorkers, AfterALostCallTheNextIsAnsweredAtOnce) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  executor_.RunFor(limits::kSyncInterval + absl::Seconds(1));
  const auto late = Send(&worker);
  ASSERT_TRUE(late.has());
  EXPECT_THAT(late.get()->keep, ElementsAre(chain));
  EXPECT_FALSE(Send(&worker).has());
}

TEST_F(DispatcherWorkers, AfterARestartOfTheServerTheFirstCallIsAnsweredAtOnce) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Start();
  const auto first = Send(&worker);
  ASSERT_TRUE(first.has());
  EXPECT_THAT(first.get()->keep, ElementsAre(chain));
  EXPECT_FALSE(Send(&worker).has());
}

TEST_F(DispatcherWorkers, StopOrderEndsTheHold) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const auto held = Send(&worker);
  ASSERT_TRUE(SetIntent(chain.job, JobIntent::kPause).ok());
  ASSERT_TRUE(held.has());
  ASSERT_EQ(held.get()->stop.size(), 1u);
  EXPECT_EQ(held.get()->stop[0].how, StopOrder::How::kHandBack);
  // The worker hands the chain back after its step; the server does not ask for repeated calls meanwhile.
  EXPECT_EQ(held.get()->next_sync_in, limits::kSyncInterval);
}

TEST_F(DispatcherWorkers, HeldCallIsAnsweredAtOnceWhenItsChainIsNotNeeded) {
  JobSpec spec = SmallSpec("job", 2);
  spec.scheduling.success_chains = 1;
  const std::string job = TryCreate(spec).value().id;
  FakeWorker first("w1"), second("w2");
  const auto a = Send(&first), b = Send(&second);
  executor_.RunFor(absl::Seconds(1));
  first.Take(*a.get());
  second.Take(*b.get());
  ASSERT_EQ(second.chains.size(), 1u);
  const auto held = Send(&second);
  EXPECT_FALSE(held.has());
  Advance(&first, first.chains.begin()->first, ChainState::kSucceeded);
  ASSERT_TRUE(held.has());
  EXPECT_EQ(held.get()->stop.size(), 1u);
}

TEST_F(DispatcherWorkers, NewerCallEndsTheHeldOne) {
  FakeWorker worker("w1");
  const auto first = Send(&worker);
  const auto second = Send(&worker);
  EXPECT_EQ(ReasonOf(first.get().status()), "STALE_SEQ");
  EXPECT_FALSE(second.has());
}

TEST_F(DispatcherWorkers, LowerSeqIsIgnored) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  FakeWorker late = worker;
  late.seq = 0;
  late.chains.clear();
  const auto answer = Send(&late);
  EXPECT_TRUE(absl::IsAborted(answer.get().status()));
  EXPECT_EQ(ReasonOf(answer.get().status()), "STALE_SEQ");
  EXPECT_EQ(Chain(chain).state, ChainState::kLeased);
}

TEST_F(DispatcherWorkers, SpreadsFourChainsOverTwoWorkersThatArriveOneAfterTheOther) {
  Create("job", 4);
  FakeWorker first("w1"), second("w2");
  const auto a = Send(&first);
  executor_.RunFor(absl::Milliseconds(300));
  const auto b = Send(&second);
  executor_.RunFor(absl::Milliseconds(300));
  EXPECT_EQ(a.get()->grants.size(), 2u);
  EXPECT_EQ(b.get()->grants.size(), 2u);
}

TEST_F(DispatcherWorkers, PlacesChainsByTheMemoryThatAWorkerHasMeasured) {
  Create("job", 16);
  FakeWorker first("w1", 2), second("w2", 8), third("w3", 8);
  Sync(&first);
  Sync(&first);
  ASSERT_EQ(first.chains.size(), 2u);
  first.chain_bytes = 300 * limits::kMiB;  // much more than their estimate; 3 of them fit
  Sync(&first);
  Sync(&second);
  Sync(&second);
  EXPECT_EQ(second.chains.size(), 3u);
  first.slots = 8;
  Sync(&first);
  Sync(&first);
  EXPECT_EQ(first.chains.size(), 3u) << "those that it had count as much as they take";
  first.chain_bytes = std::numeric_limits<int64_t>::max();  // a worker's report is bounded, and so are sums of reports
  Sync(&first);
  Sync(&third);
  Sync(&third);
  EXPECT_EQ(third.chains.size(), 1u);
  first.chain_bytes = 100 * limits::kMiB;  // as when its batch is fuller
  first.slots = 3;
  Sync(&first);
  FakeWorker fourth("w4", 8);
  Sync(&fourth);
  Sync(&fourth);
  EXPECT_EQ(fourth.chains.size(), 8u);
}

TEST_F(DispatcherWorkers, GrantIsRepeatedWithTheSameEpochUntilListed) {
  const ChainId chain{Create("job", 1), 0};
  FakeWorker worker("w1");
  const auto lost = Send(&worker);
  executor_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(lost.has());  // the reply never reaches the worker
  const SynchronizeReply again = Sync(&worker);
  ASSERT_EQ(again.grants.size(), 1u);
  EXPECT_EQ(again.grants[0].lease_epoch, lost.get()->grants[0].lease_epoch);
  EXPECT_EQ(again.grants[0].plan->job, chain.job);
  const SynchronizeReply listed = Sync(&worker);
  EXPECT_TRUE(listed.grants.empty());
  EXPECT_THAT(listed.keep, ElementsAre(chain));
}

TEST_F(DispatcherWorkers, RefusedGrantGoesToAnotherWorkerWithTheNextEpoch) {
  const ChainId chain{Create("job", 1), 0};
  FakeWorker small("w1"), big("w2");
  Sync(&small);
  ASSERT_TRUE(small.chains.contains(chain));
  const auto waiting = Send(&big);
  GiveBack(&small, chain, ReleasedChain::Why::kRefused, "too little memory");
  Send(&small);
  executor_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(waiting.has());
  ASSERT_EQ(waiting.get()->grants.size(), 1u);
  EXPECT_EQ(waiting.get()->grants[0].lease_epoch, 2);
  EXPECT_EQ(Chain(chain).attempts, 1);
  EXPECT_THAT(Chain(chain).reason, HasSubstr("too little memory"));
}

TEST_F(DispatcherWorkers, ChainOfAnotherEpochOrStoreIsFenced) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  FakeWorker other("w2", 0);
  other.chains[chain] = {7, {}};
  Sync(&other);
  EXPECT_THAT(other.stops, ElementsAre(Pair(chain, StopOrder::How::kFenced)));
  other.chains[chain] = {1, {}};  // the right epoch at the wrong worker
  Sync(&other);
  EXPECT_THAT(other.stops, ElementsAre(Pair(chain, StopOrder::How::kFenced)));
  worker.store_incarnation = "another-store";
  Sync(&worker);
  EXPECT_THAT(worker.stops, ElementsAre(Pair(chain, StopOrder::How::kFenced)));
}

TEST_F(DispatcherWorkers, CommitsThatWaitForTheFirstOneOfTheirChainAreBounded) {
  FakeWorker worker("w1");
  const ProgressCommit commit = worker.Made(worker.NextCommit(LeaseOne(&worker)));
  for (int i = 0; i < 1 + 64; ++i) dispatcher_->CommitProgress(commit, [](const auto&) {});
  Answer<CommitReply> refused;
  dispatcher_->CommitProgress(commit, refused.reply());
  executor_.RunUntilIdle();
  EXPECT_EQ(ReasonOf(refused.get().status()), "OVERLOADED");
  EXPECT_EQ(BoundOf(refused.get().status()), "waiting_commits");
}

TEST_F(DispatcherWorkers, PauseHandsBackAndGrantsNothing) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ASSERT_TRUE(SetIntent("job", JobIntent::kPause).ok());
  const SynchronizeReply reply = Sync(&worker);
  EXPECT_THAT(reply.keep, ElementsAre(chain)) << "the lease holds while it hands back";
  EXPECT_THAT(worker.stops, ElementsAre(Pair(chain, StopOrder::How::kHandBack)));
  Advance(&worker, chain, ChainState::kPending);
  EXPECT_EQ(dispatcher_->GetJob(IdOf("job"))->state, JobState::kPaused);
  EXPECT_TRUE(Sync(&worker).grants.empty());
  ASSERT_TRUE(SetIntent("job", JobIntent::kRun).ok());
  const SynchronizeReply resumed = Sync(&worker);
  ASSERT_EQ(resumed.grants.size(), 1u);
  EXPECT_EQ(resumed.grants[0].lease_epoch, 2);
  EXPECT_EQ(resumed.grants[0].progress.step, 10);
  EXPECT_EQ(resumed.grants[0].progress.num_draws, 1);
  EXPECT_EQ(resumed.grants[0].progress.resume_point->inline_bytes, "state");
}

TEST_F(DispatcherWorkers, GrantOfAPausedJobIsNotDelivered) {
  const ChainId chain{Create("job", 1), 0};
  FakeWorker worker("w1");
  Sync(&worker);  // its reply is lost
  worker.chains.clear();
  ASSERT_TRUE(SetIntent("job", JobIntent::kPause).ok());
  EXPECT_TRUE(Sync(&worker).grants.empty());
  executor_.RunFor(absl::Seconds(1));
  EXPECT_EQ(Chain(chain).state, ChainState::kPending);
  EXPECT_EQ(Chain(chain).attempts, 0);
}

TEST_F(DispatcherWorkers, FinishKeepsTheDrawsAndEndsEarly) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Advance(&worker, chain);
  ASSERT_TRUE(SetIntent("job", JobIntent::kFinish).ok());
  Sync(&worker);
  EXPECT_THAT(worker.stops, ElementsAre(Pair(chain, StopOrder::How::kHandBack)));
  Advance(&worker, chain, ChainState::kPending);
  const JobView job = dispatcher_->GetJob(IdOf("job")).value();
  EXPECT_EQ(job.state, JobState::kSucceededEarly);
  EXPECT_EQ(job.newest_version, 1);
  EXPECT_TRUE(job.finished_at.has_value());
}

TEST_F(DispatcherWorkers, CancelTellsTheWorkerToDrop) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit late = worker.NextCommit(chain);
  ASSERT_TRUE(SetIntent("job", JobIntent::kCancel).ok());
  EXPECT_EQ(Chain(chain).state, ChainState::kCancelled);
  EXPECT_EQ(ReasonOf(Commit(worker, late).status()), "CHAIN_FINAL");
  Sync(&worker);
  EXPECT_THAT(worker.stops, ElementsAre(Pair(chain, StopOrder::How::kDrop)));
}

TEST_F(DispatcherWorkers, DrainingWorkerHandsBackForFreeAndGetsNothing) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  worker.draining = true;
  Sync(&worker);
  EXPECT_THAT(worker.stops, ElementsAre(Pair(chain, StopOrder::How::kHandBack)));
  GiveBack(&worker, chain, ReleasedChain::Why::kStopped);
  EXPECT_TRUE(Sync(&worker).grants.empty());
  EXPECT_EQ(Chain(chain).state, ChainState::kPending);
  EXPECT_EQ(Chain(chain).attempts, 0);
}

TEST_F(DispatcherWorkers, AnOperatorDrainsAWorkerUntilItsProcessEnds) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  EXPECT_EQ(ReasonOf(dispatcher_->DrainWorker("w2").status()), "WORKER_NOT_FOUND");
  const absl::StatusOr<WorkerView> drained = dispatcher_->DrainWorker("w1");
  ASSERT_TRUE(drained.ok()) << drained.status();
  EXPECT_TRUE(drained->draining);
  EXPECT_EQ(drained->chains, 1);
  Sync(&worker);
  EXPECT_THAT(worker.stops, ElementsAre(Pair(chain, StopOrder::How::kHandBack)));
  Advance(&worker, chain, ChainState::kPending);
  EXPECT_EQ(dispatcher_->ListWorkers().front().chains, 0);
  EXPECT_TRUE(Sync(&worker).grants.empty()) << "it does not say so itself";
  EXPECT_EQ(Chain(chain).attempts, 0);
  worker.Restart();
  Sync(&worker);
  EXPECT_TRUE(worker.chains.contains(chain));
  EXPECT_FALSE(dispatcher_->ListWorkers().front().draining);
}

TEST_F(DispatcherWorkers, ChainEndedByItsHolderIsNotFencedBeforeItReadsTheReply) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ProgressCommit last = worker.NextCommit(chain);
  last.ends_as = ChainState::kSucceeded;
  ASSERT_TRUE(Commit(worker, last).ok());
  const SynchronizeReply reply = Sync(&worker);  // still lists it
  EXPECT_TRUE(reply.stop.empty());
  EXPECT_TRUE(reply.keep.empty());
}

TEST_F(DispatcherWorkers, ReportsShowInViews) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  worker.chains.at(chain).progress.step = 77;
  Sync(&worker);
  EXPECT_EQ(Chain(chain).step, 77);
  EXPECT_EQ(Chain(chain).worker, "w1");
  const std::vector<WorkerView> workers = dispatcher_->ListWorkers();
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0].host, "host-of-w1");
  EXPECT_EQ(workers[0].device, "cpu");
  EXPECT_EQ(workers[0].chain_slots, 4);
  EXPECT_EQ(workers[0].chains, 1);
}

TEST_F(DispatcherTest, TheOldestWaitBelongsToAChainNotToTheQueue) {
  constexpr absl::Duration kTurn = absl::Seconds(10);
  FakeWorker worker("w1", 1);
  const auto run_next = [&] {
    for (int i = 0; i < 20 && worker.chains.empty(); ++i) Sync(&worker);
    ASSERT_EQ(worker.chains.size(), 1u);
  };
  Create("first", 1);
  Create("second", 1);
  run_next();
  for (int turn = 0; turn < 12; ++turn) {
    executor_.RunFor(kTurn / 2);
    Sync(&worker);
    Create(absl::StrCat("later-", turn), 1);
    executor_.RunFor(kTurn / 2);
    Sync(&worker);
    Advance(&worker, worker.chains.begin()->first, ChainState::kSucceeded);
    run_next();
    EXPECT_GT(dispatcher_->Demand().waiting, 0) << "the queue is never empty";
  }
  const FleetDemand demand = dispatcher_->Demand();
  EXPECT_GE(demand.waiting_for, 12 * kTurn);
  EXPECT_GT(demand.oldest_wait, absl::ZeroDuration());
  EXPECT_LT(demand.oldest_wait, 4 * kTurn);
}

TEST_F(DispatcherTest, ReportsWaitingChainsAndTheirWait) {
  EXPECT_EQ(dispatcher_->Demand().waiting_for, absl::ZeroDuration());
  Create("job", 3);
  const std::string paused = Create("paused", 8);
  ASSERT_TRUE(SetIntent(paused, JobIntent::kPause).ok());
  executor_.RunFor(absl::Seconds(7));
  FleetDemand demand = dispatcher_->Demand();
  EXPECT_EQ(demand.waiting, 3);
  EXPECT_EQ(demand.waiting_for, absl::Seconds(7));
  EXPECT_EQ(demand.oldest_wait, absl::Seconds(7));
  FakeWorker worker("w1", 2);
  Sync(&worker);
  demand = dispatcher_->Demand();
  EXPECT_EQ(demand.waiting, 1);
  ASSERT_EQ(demand.workers.size(), 1u);
  EXPECT_EQ(demand.workers[0].chains, 2);
  FakeWorker other("w2", 2);
  Sync(&other);
  demand = dispatcher_->Demand();
  EXPECT_EQ(demand.waiting, 0);
  EXPECT_EQ(demand.waiting_for, absl::ZeroDuration());
}

TEST_F(DispatcherTest, CountsOnlyWorkersHeardOfWithinALease) {
  FakeWorker worker("w1"), silent("w2");
  Sync(&silent);
  executor_.RunFor(limits::kLeaseTtl);
  Sync(&worker);
  executor_.RunFor(absl::Seconds(1));
  const FleetDemand demand = dispatcher_->Demand();
  ASSERT_EQ(demand.workers.size(), 1u);
  EXPECT_EQ(demand.workers[0].id, "w1");
}

TEST_F(DispatcherWorkers, GrantsThatNoOneReplyCarriesComeInSeveral) {
  constexpr int64_t n = GaussianPotential::kMaxCovarianceDimension;
  JobSpec large = SmallSpec("large", 2);
  GaussianPotential gaussian{.dimension = n};
  gaussian.covariance.resize(n * n);
  for (int64_t i = 0; i < n; ++i) gaussian.covariance[i * n + i] = 1;
  large.model.kind = PotentialKind(gaussian);
  constexpr int kJobs = 8;
  for (int i = 0; i < kJobs; ++i) {
    large.name = absl::StrCat("large", i);
    ASSERT_TRUE(TryCreate(large).ok());
  }
  FakeWorker worker("w1", 2 * kJobs);
  Sync(&worker);
  size_t replies = 0;
  while (worker.chains.size() < 2 * kJobs && replies < 20) {
    const SynchronizeReply reply = Sync(&worker);
    ++replies;
    std::set<const JobPlan*> plans;
    for (const Grant& grant : reply.grants) plans.insert(grant.plan.get());
    EXPECT_LE(static_cast<int64_t>(plans.size() * n * n * sizeof(double)), limits::kPageBytes);
    if (worker.chains.size() < 2 * kJobs && !reply.grants.empty()) {
      EXPECT_EQ(reply.next_sync_in, absl::ZeroDuration());
    }
  }
  EXPECT_EQ(worker.chains.size(), 2u * kJobs);
  EXPECT_GE(replies, 2u);
}

}  // namespace
}  // namespace chainfleet
