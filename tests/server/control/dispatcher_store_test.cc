// The Dispatcher and its store: restarts, a full disk, a lost leadership.
#include <malloc.h>
#include <unistd.h>

#include <filesystem>

#include "core/store/state_store/sqlite_state_store.h"
#include "tests/server/control/dispatcher_fixture.h"
#include "tests/support/recording_store.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;

class DispatcherStore : public DispatcherTest {};

TEST_F(DispatcherStore, RestartGivesOneFullTerm) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  clock_.Advance(absl::Hours(1));  // the server was away; no lease was expired
  Start();
  executor_.RunFor(kTermAndGrace - absl::Seconds(1));
  EXPECT_EQ(Chain(chain).state, ChainState::kLeased);
  executor_.RunFor(absl::Seconds(2));
  EXPECT_EQ(Chain(chain).state, ChainState::kPending);
}

TEST_F(DispatcherStore, RestartLongerThanTheLeaseCostsNoWork) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  clock_.Advance(absl::Hours(1));
  Start();
  EXPECT_THAT(Sync(&worker).keep, ElementsAre(chain));
  Advance(&worker, chain);
  EXPECT_EQ(Chain(chain).lease_epoch, 1);
}

TEST_F(DispatcherStore, UnseenGrantIsRepeatedAfterARestart) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Advance(&worker, chain, ChainState::kPending);
  const auto lost = Send(&worker);
  executor_.RunFor(absl::Seconds(1));
  ASSERT_EQ(lost.get()->grants.size(), 1u);
  Start();
  const SynchronizeReply reply = Sync(&worker);
  ASSERT_EQ(reply.grants.size(), 1u);
  EXPECT_EQ(reply.grants[0].lease_epoch, lost.get()->grants[0].lease_epoch);
  EXPECT_EQ(reply.grants[0].progress.resume_point->step, 10);
}

TEST_F(DispatcherStore, UnseenGrantOfAJobPausedSinceEndsForFree) {
  const ChainId chain{Create("job", 1), 0};
  FakeWorker worker("w1");
  Sync(&worker);
  worker.chains.clear();  // the reply was lost
  Start();
  ASSERT_TRUE(SetIntent("job", JobIntent::kPause).ok());
  EXPECT_TRUE(Sync(&worker).grants.empty());
  EXPECT_EQ(Chain(chain).state, ChainState::kPending);
  EXPECT_EQ(Chain(chain).attempts, 0);
}

TEST_F(DispatcherStore, RestartOfBothEndsTheLease) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Start();
  worker.Restart();
  const SynchronizeReply reply = Sync(&worker);
  ASSERT_EQ(reply.grants.size(), 1u);
  EXPECT_EQ(reply.grants[0].lease_epoch, 2);
}

TEST_F(DispatcherStore, FullDiskRefusesChangesAndLosesNothing) {
  RecordingStore store(database_.Open());
  StartOn(&store);
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Advance(&worker, chain);
  store.SetFull(true);
  const ProgressCommit commit = worker.NextCommit(chain);
  const auto refused = Commit(worker, commit);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_EQ(ReasonOf(refused.status()), "DISK_FULL");
  EXPECT_TRUE(absl::IsResourceExhausted(TryCreate(SmallSpec("more", 1)).status()));
  EXPECT_TRUE(dispatcher_->GetJob(IdOf("job")).ok()) << "the server goes on answering";
  executor_.RunFor(kTermAndGrace * 2);  // nor can it end the lease
  EXPECT_EQ(Chain(chain).state, ChainState::kLeased);
  store.SetFull(false);
  EXPECT_TRUE(Commit(worker, commit).ok());
  EXPECT_TRUE(lost_.ok());
}

TEST_F(DispatcherStore, DeletedJobsArePurgedPageAfterPage) {
  RecordingStore store(database_.Open());
  StartOn(&store);
  FakeWorker worker("w1");
  std::vector<ChainId> chains;
  for (const char* name : {"one", "two"}) {
    JobSpec spec = SmallSpec(name, 1);
    spec.num_steps = 1'000'000;
    chains.push_back({TryCreate(spec).value().id, 0});
  }
  Sync(&worker);
  Sync(&worker);
  for (const ChainId& chain : chains) {
    for (int i = 0; i < change::kPurgePage + 1; ++i) Advance(&worker, chain);
    ASSERT_TRUE(SetIntent(chain.job, JobIntent::kDelete).ok());
  }
  const size_t before = store.group_sizes().size();
  executor_.RunFor(limits::kEvaluateDeadline + absl::Seconds(1));
  const std::vector<int> groups(store.group_sizes().begin() + static_cast<int64_t>(before), store.group_sizes().end());
  EXPECT_THAT(groups, ElementsAre(1, 1, 1, 1)) << "two pages for each, never together";
  EXPECT_TRUE(store.Load()->jobs.empty());
  EXPECT_TRUE(absl::IsNotFound(dispatcher_->GetJob(chains[0].job).status()));
}

TEST_F(DispatcherStore, LostStoreEndsTheProcessAndAnswersNotLeader) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const std::unique_ptr<StateStore> successor = database_.Open();
  const auto refused = Commit(worker, worker.NextCommit(chain));
  EXPECT_TRUE(absl::IsUnavailable(refused.status()));
  EXPECT_EQ(ReasonOf(refused.status()), "NOT_LEADER");
  EXPECT_EQ(ReasonOf(lost_), "NOT_LEADER");
  EXPECT_EQ(ReasonOf(TryCreate(SmallSpec("more", 1)).status()), "NOT_LEADER");
}

TEST_F(DispatcherStore, DestroyedDispatcherLeavesItsTasksHarmless) {
  FakeWorker worker("w1");
  Create("job", 2);
  const auto held = Send(&worker);
  coordinator_.reset();
  executor_.RunFor(absl::Minutes(1));
  EXPECT_FALSE(held.has());
}

TEST_F(DispatcherStore, IdleServerSetsNoTimer) {
  executor_.RunFor(absl::Minutes(5));
  EXPECT_EQ(executor_.num_tasks(), 0u);
}

// 200 bytes a draw are allowed. The rest is in the store, whose cache fills and then keeps its size.
TEST_F(DispatcherStore, MemoryDoesNotGrowWithTheDraws) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("draws-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto store = OpenSqliteStateStore((folder / "state.db").string(), "s1").value();
  StartOn(store.get());
  JobSpec spec = SmallSpec("job", 1);
  spec.num_steps = 1'000'000;
  const ChainId chain{TryCreate(spec).value().id, 0};
  FakeWorker worker("w1");
  Sync(&worker);
  const auto used_after = [&](int draws) {
    for (int i = 0; i < draws; ++i) {
      Advance(&worker, chain);
      if (i % 100 == 0) Sync(&worker);
    }
    return mallinfo2().uordblks;
  };
  constexpr int kDraws = 10'000;
  const size_t before = used_after(2'000);
  EXPECT_LT(used_after(kDraws), before + 100 * kDraws);
  EXPECT_EQ(Chain(chain).num_draws, 12'000);
  coordinator_.reset();
  std::filesystem::remove_all(folder);
}

TEST_F(DispatcherStore, TimersStayBounded) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  for (int i = 0; i < 200; ++i) {
    executor_.RunFor(absl::Milliseconds(100));
    Sync(&worker);
    Advance(&worker, chain);
  }
  EXPECT_LT(executor_.num_tasks(), 10u);
}

}  // namespace
}  // namespace chainfleet
