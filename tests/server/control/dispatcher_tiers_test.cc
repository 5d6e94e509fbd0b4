// Tests tiers, preemption, and success_chains.
#include "core/domain/chain_memory.h"
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class DispatcherTiers : public DispatcherTest {
 protected:
  std::string CreateAt(Priority priority, const std::string& name, int chains) {
    JobSpec spec = SmallSpec(name, chains);
    spec.scheduling.priority = priority;
    return TryCreate(spec).value().id;
  }
  // Hands the chain back with a resume point, as an ordered worker does.
  void HandBack(FakeWorker* worker, const ChainId& chain) {
    ASSERT_THAT(worker->stops, testing::Contains(Pair(chain, StopOrder::How::kHandBack)));
    Advance(worker, chain, ChainState::kPending);
    executor_.RunFor(limits::kPolicyInterval);
  }
};

TEST_F(DispatcherTiers, AHigherTierIsGrantedBeforeAnOlderJob) {
  CreateAt(Priority::kLow, "low", 1);
  CreateAt(Priority::kNormal, "normal", 1);
  const std::string high = CreateAt(Priority::kHigh, "high", 1);
  FakeWorker worker("w1", 1);
  Sync(&worker);
  ASSERT_EQ(worker.chains.size(), 1u);
  EXPECT_EQ(worker.chains.begin()->first.job, high);
}

TEST_F(DispatcherTiers, AHigherTierPreemptsTheYoungestJobOfTheLowestTier) {
  FakeWorker worker("w1", 3);
  const std::string normal = CreateAt(Priority::kNormal, "normal", 1), old = CreateAt(Priority::kLow, "old", 1),
                    young = CreateAt(Priority::kLow, "young", 1);
  Sync(&worker);
  Sync(&worker);
  ASSERT_EQ(worker.chains.size(), 3u);
  const std::string high = CreateAt(Priority::kHigh, "high", 1);
  Sync(&worker);
  EXPECT_THAT(worker.stops, ElementsAre(Pair(ChainId{young, 0}, StopOrder::How::kHandBack)));
  HandBack(&worker, {young, 0});
  Sync(&worker);
  EXPECT_TRUE(worker.chains.contains({high, 0}));
  const ChainView gave_way = Chain({young, 0});
  EXPECT_EQ(gave_way.state, ChainState::kPending);
  EXPECT_EQ(gave_way.attempts, 0) << "what the server ordered is free";
  EXPECT_EQ(gave_way.num_draws, 1);
  Advance(&worker, {high, 0}, ChainState::kSucceeded);
  Sync(&worker);
  ASSERT_TRUE(worker.chains.contains({young, 0})) << "it goes on when there is room again";
  EXPECT_EQ(worker.chains.at({young, 0}).progress.step, 10) << "from its resume point";
}

TEST_F(DispatcherTiers, OnlyAsManyYieldAsWait) {
  FakeWorker first("w1", 4), second("w2", 4);
  const std::string low = CreateAt(Priority::kLow, "low", 8);
  Sync(&first);
  Sync(&second);
  Sync(&first);
  Sync(&second);
  ASSERT_EQ(first.chains.size() + second.chains.size(), 8u);
  CreateAt(Priority::kHigh, "high", 3);
  for (int round = 0; round < 3; ++round) {
    Sync(&first);
    Sync(&second);
    EXPECT_EQ(first.stops.size() + second.stops.size(), 3u) << round;
  }
}

TEST_F(DispatcherTiers, EqualTiersWaitForEachOther) {
  FakeWorker worker("w1", 1);
  CreateAt(Priority::kHigh, "first", 1);
  Sync(&worker);
  Sync(&worker);
  CreateAt(Priority::kHigh, "second", 1);
  Sync(&worker);
  EXPECT_THAT(worker.stops, IsEmpty());
}

TEST_F(DispatcherTiers, NoChainYieldsAfterTheWaitingJobIsGone) {
  FakeWorker worker("w1", 2);
  CreateAt(Priority::kLow, "low", 2);
  Sync(&worker);
  Sync(&worker);
  ASSERT_EQ(worker.chains.size(), 2u);
  const std::string high = CreateAt(Priority::kHigh, "high", 1);
  ASSERT_TRUE(SetIntent(high, JobIntent::kCancel).ok());
  executor_.RunFor(limits::kPolicyInterval);
  Sync(&worker);
  EXPECT_THAT(worker.stops, IsEmpty());
}

TEST_F(DispatcherTiers, NoOtherChainYieldsWhileAnOrderedYieldIsSlow) {
  FakeWorker worker("w1", 2);
  const std::string low = CreateAt(Priority::kLow, "low", 2);
  Sync(&worker);
  Sync(&worker);
  CreateAt(Priority::kHigh, "high", 1);
  Sync(&worker);
  EXPECT_THAT(worker.stops, ElementsAre(Pair(ChainId{low, 1}, StopOrder::How::kHandBack)));
  for (int i = 0; i < 3; ++i) Sync(&worker);  // it is slow
  EXPECT_THAT(worker.stops, ElementsAre(Pair(ChainId{low, 1}, StopOrder::How::kHandBack)));
}

TEST_F(DispatcherTiers, ForMemoryTheChainsOfOneWorkerYield) {
  JobSpec spec = SmallSpec("low", 3);
  spec.model.kind = GaussianPotential{1'000'000, 1.0};
  spec.scheduling.priority = Priority::kLow;
  FakeWorker worker("w1", 8);
  worker.memory_bytes = 4 * EstimateChainBytes(spec, {}, 0);
  const std::string low = TryCreate(spec).value().id;
  Sync(&worker);
  Sync(&worker);
  ASSERT_EQ(worker.chains.size(), 3u);
  spec.name = "high";
  spec.chains = 1;
  spec.model.kind = GaussianPotential{2'500'000, 1.0};
  spec.scheduling.priority = Priority::kHigh;
  const std::string high = TryCreate(spec).value().id;
  Sync(&worker);
  EXPECT_THAT(worker.stops, UnorderedElementsAre(Pair(ChainId{low, 1}, StopOrder::How::kHandBack),
                                                 Pair(ChainId{low, 2}, StopOrder::How::kHandBack)));
  HandBack(&worker, {low, 1});
  HandBack(&worker, {low, 2});
  Sync(&worker);
  EXPECT_TRUE(worker.chains.contains({high, 0}));
  EXPECT_TRUE(worker.chains.contains({low, 0}));
}

TEST_F(DispatcherTiers, EnoughSuccessesEndTheOthersWhereTheyAre) {
  JobSpec spec = SmallSpec("job", 4);
  spec.scheduling.success_chains = 2;
  const std::string job = TryCreate(spec).value().id;
  FakeWorker worker("w1", 3);  // one chain never starts
  Sync(&worker);
  Sync(&worker);
  ASSERT_EQ(worker.chains.size(), 3u);
  Advance(&worker, {job, 2});
  Advance(&worker, {job, 0}, ChainState::kSucceeded);
  EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kRunning);
  Sync(&worker);
  Advance(&worker, {job, 1}, ChainState::kSucceeded);
  Sync(&worker);
  for (auto held = worker.chains; const auto& [chain, lease] : held) HandBack(&worker, chain);
  executor_.RunFor(limits::kSyncInterval);
  const JobView view = dispatcher_->GetJob(job).value();
  EXPECT_EQ(view.state, JobState::kSucceeded);
  EXPECT_TRUE(view.finished_at.has_value());
  for (const ChainView& chain : view.chains) EXPECT_EQ(chain.state, ChainState::kSucceeded) << chain.id.index;
  EXPECT_EQ(view.chains[2].num_draws, 2) << "what it drew is kept";
  Sync(&worker);
  EXPECT_THAT(worker.chains, IsEmpty());
}

TEST_F(DispatcherTiers, AFailedChainIsForgivenWhileEnoughSucceed) {
  JobSpec spec = SmallSpec("job", 3);
  spec.scheduling.success_chains = 2;
  const std::string job = TryCreate(spec).value().id;
  FakeWorker worker("w1", 3);
  Sync(&worker);
  Sync(&worker);
  Advance(&worker, {job, 0}, ChainState::kDiverged);
  Advance(&worker, {job, 1}, ChainState::kSucceeded);
  Advance(&worker, {job, 2}, ChainState::kSucceeded);
  EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kSucceeded);
}

TEST_F(DispatcherTiers, EachPointOfASweepNeedsItsOwnSuccesses) {
  JobSpec spec = SmallSpec("job", 2);
  spec.sweep.temperature = {1, 2};  // chains 0 and 1, 2 and 3
  spec.scheduling.success_chains = 1;
  const std::string job = TryCreate(spec).value().id;
  FakeWorker worker("w1", 4);
  Sync(&worker);
  Sync(&worker);
  Advance(&worker, {job, 0}, ChainState::kSucceeded);
  Sync(&worker);
  EXPECT_THAT(worker.stops, UnorderedElementsAre(Pair(ChainId{job, 1}, StopOrder::How::kHandBack)));
  HandBack(&worker, {job, 1});
  EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kRunning);
  Advance(&worker, {job, 3}, ChainState::kSucceeded);
  Sync(&worker);
  HandBack(&worker, {job, 2});
  executor_.RunFor(limits::kSyncInterval);
  EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kSucceeded);
}

}  // namespace
}  // namespace chainfleet
