// Tests how leases end, and the cost of each end.
#include "absl/strings/str_cat.h"
#include "server/control/lease_table.h"
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DispatcherLeases : public DispatcherTest {};

// A fault of the store never counts against the chain: the chain waits, reports why, and continues when the store is
// repaired.
TEST_F(DispatcherLeases, AChainThatWaitsForTheStoreLosesNoAttempt) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  for (int i = 0; i < 2 * limits::kMaxAttemptsWithoutProgress; ++i) {
    GiveBack(&worker, chain, ReleasedChain::Why::kStore, "the resume point does not match its digest");
    Send(&worker);
    executor_.RunFor(kStoreFaultDelay - absl::Milliseconds(1));
    ASSERT_EQ(Chain(chain).state, ChainState::kPending);
    EXPECT_EQ(Chain(chain).attempts, 0);
    EXPECT_THAT(Chain(chain).reason, HasSubstr("w1 waits for the store: the resume point does not match its digest"));
    executor_.RunFor(absl::Milliseconds(1) + limits::kPolicyInterval);
    ASSERT_EQ(Chain(chain).state, ChainState::kLeased) << i;
    Sync(&worker);
    ASSERT_TRUE(worker.chains.contains(chain)) << "the worker that had it may have it again";
  }
}

// Somebody who can write the state store may have put an older or a forged resume point in its place.
TEST_F(DispatcherLeases, AChainWaitsWhileItsResumePointIsNotTheCommittedOne) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Advance(&worker, chain);
  ASSERT_TRUE(SetIntent("job", JobIntent::kPause).ok());
  Advance(&worker, chain, ChainState::kPending);
  const auto tables = SqliteConnection::Open(database_.path()).value();
  const auto set = [&](const std::string& column, const std::string& value) {
    EXPECT_TRUE(tables->Execute(absl::StrCat("UPDATE resume_points SET ", column, " = '", value, "'")).ok());
    EXPECT_EQ(tables->changes(), 1);
  };
  struct Fault {
    std::string column, value, committed, said;
  };
  for (const Fault& fault : {Fault{"step", "10", "20", "is of step 10"},
                             Fault{"sha256", DigestOf(7), Sha256Hex("state"), "does not match its digest"},
                             Fault{"chain", "1", "0", "is missing"}}) {
    set(fault.column, fault.value);
    ASSERT_TRUE(SetIntent("job", JobIntent::kRun).ok());
    const int64_t epoch = Chain(chain).lease_epoch;
    for (int i = 0; i < 2 * limits::kMaxAttemptsWithoutProgress; ++i) {
      EXPECT_TRUE(Sync(&worker).grants.empty()) << fault.column;
      executor_.RunFor(kStoreFaultDelay);
    }
    EXPECT_GT(Chain(chain).lease_epoch, epoch + limits::kMaxAttemptsWithoutProgress);
    EXPECT_EQ(Chain(chain).state, ChainState::kPending);
    EXPECT_EQ(Chain(chain).attempts, 0);
    EXPECT_THAT(Chain(chain).reason, HasSubstr("the resume point " + fault.said + ", the chain is at step 20"));
    set(fault.column, fault.committed);
  }
  executor_.RunFor(kStoreFaultDelay);
  Sync(&worker);
  ASSERT_TRUE(worker.chains.contains(chain));
  EXPECT_EQ(worker.chains.at(chain).progress.step, 20);
}

TEST_F(DispatcherLeases, AChainWaitsWhileNobodyOfTheFleetHasCommittedItsResumePoint) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ProgressCommit commit = worker.NextCommit(chain);
  commit.ends_as = ChainState::kPending;
  commit.resume_point.proof.emplace().last_digest = commit.segment->digest;
  commit.resume_point.proof->name =
      ResumeObjectName("incarnation-1", chain, commit.lease_epoch, commit.resume_point.sha256);
  std::vector<std::optional<ResumeProof>> checked;
  check_resume_point_ = [&](const std::string& tenant, const ApplyResult& granted) -> absl::Status {
    EXPECT_EQ(tenant, kDefaultTenant);
    EXPECT_EQ(Chain(chain).state, ChainState::kPending) << "it runs without the lock, before the grant is known";
    checked.push_back(granted.resume_point->proof);
    return absl::DataLossError("it is forged");
  };
  ASSERT_TRUE(Commit(worker, commit).ok());
  worker.Took(commit);
  EXPECT_TRUE(Sync(&worker).grants.empty());
  EXPECT_EQ(Chain(chain).state, ChainState::kPending);
  EXPECT_EQ(Chain(chain).attempts, 0);
  EXPECT_THAT(Chain(chain).reason, HasSubstr("waits for the store: it is forged"));
  ASSERT_FALSE(checked.empty());
  EXPECT_EQ(checked[0], commit.resume_point.proof);
  check_resume_point_ = nullptr;
  executor_.RunFor(kStoreFaultDelay + limits::kPolicyInterval);
  Sync(&worker);
  ASSERT_TRUE(worker.chains.contains(chain));
  EXPECT_EQ(worker.chains.at(chain).progress.step, 10);
  EXPECT_FALSE(worker.chains.at(chain).progress.resume_point->proof.has_value()) << "a worker cannot check it";
}

TEST_F(DispatcherLeases, AWorkerThatKeptItsChainNeedsNoResumePoint) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Advance(&worker, chain);
  ASSERT_TRUE(SqliteConnection::Open(database_.path()).value()->Execute("UPDATE resume_points SET step = 5").ok());
  worker.slots = 0;  // it gets no grant, and there is no other worker
  Sync(&worker);
  executor_.RunFor(kTermAndGrace * 3);
  ASSERT_EQ(Chain(chain).state, ChainState::kPending);
  EXPECT_THAT(Sync(&worker).keep, ElementsAre(chain));
  EXPECT_EQ(Chain(chain).lease_epoch, 1);
}

TEST_F(DispatcherLeases, SilentWorkersChainMovesAfterTermAndGrace) {
  FakeWorker dead("w1"), other("w2");
  const ChainId chain = LeaseOne(&dead);
  Sync(&other);
  executor_.RunFor(kTermAndGrace - limits::kSyncInterval - absl::Seconds(1));
  EXPECT_EQ(Chain(chain).state, ChainState::kLeased) << "within its grace";
  executor_.RunFor(absl::Seconds(2));
  EXPECT_EQ(Chain(chain).state, ChainState::kPending) << "an idle server expires leases, too";
  EXPECT_EQ(Chain(chain).lease_epoch, 1) << "only a grant raises the epoch";
  EXPECT_EQ(Chain(chain).attempts, 1);
  EXPECT_THAT(Chain(chain).reason, HasSubstr("w1"));
  const SynchronizeReply reply = Sync(&other);
  ASSERT_EQ(reply.grants.size(), 1u);
  EXPECT_EQ(reply.grants[0].lease_epoch, 2);
}

TEST_F(DispatcherLeases, SynchronizeRenewsTheLease) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  for (int i = 0; i < 20; ++i) {
    executor_.RunFor(limits::kSyncInterval);
    ASSERT_THAT(Sync(&worker).keep, ElementsAre(chain));
  }
  EXPECT_EQ(Chain(chain).lease_epoch, 1);
}

TEST_F(DispatcherLeases, SameWorkerLeasesAgainAfterExpiryWithTheSameEpoch) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  worker.slots = 0;  // it gets no grant, and there is no other worker
  Sync(&worker);
  executor_.RunFor(kTermAndGrace * 3);
  ASSERT_EQ(Chain(chain).state, ChainState::kPending);
  const SynchronizeReply reply = Sync(&worker);
  EXPECT_THAT(reply.keep, ElementsAre(chain));
  EXPECT_EQ(Chain(chain).state, ChainState::kLeased);
  EXPECT_EQ(Chain(chain).lease_epoch, 1);
}

TEST_F(DispatcherLeases, AcceptsCommitAfterExpiryUntilTheNextGrant) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  executor_.RunFor(kTermAndGrace * 3);
  ASSERT_EQ(Chain(chain).state, ChainState::kPending);
  Advance(&worker, chain);
  EXPECT_EQ(Chain(chain).num_draws, 1);
  EXPECT_EQ(Chain(chain).attempts, 0);
}

TEST_F(DispatcherLeases, RefusesCommitFromOldEpoch) {
  FakeWorker worker("w1"), other("w2");
  const ChainId chain = LeaseOne(&worker);
  executor_.RunFor(kTermAndGrace);
  Sync(&other);
  ASSERT_TRUE(other.chains.contains(chain));
  const auto late = Commit(worker, worker.NextCommit(chain));
  EXPECT_TRUE(absl::IsFailedPrecondition(late.status()));
  EXPECT_EQ(ReasonOf(late.status()), "LEASE_FENCED");
  EXPECT_EQ(ReasonOf(Sessions(*dispatcher_).CheckLease(chain, 1)), "LEASE_FENCED");
  EXPECT_TRUE(Sessions(*dispatcher_).CheckLease(chain, 2).ok());
  Advance(&other, chain);
}

TEST_F(DispatcherLeases, ReplayedCommitIsOk) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit commit = worker.NextCommit(chain);
  EXPECT_FALSE(Commit(worker, commit)->replayed);
  EXPECT_TRUE(Commit(worker, commit)->replayed);
  EXPECT_EQ(Chain(chain).num_draws, 1);
}

TEST_F(DispatcherLeases, NewIncarnationEndsTheOldLeasesAtOnce) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  worker.Restart();
  const SynchronizeReply reply = Sync(&worker);
  ASSERT_EQ(reply.grants.size(), 1u);
  EXPECT_EQ(reply.grants[0].lease_epoch, 2);
  EXPECT_EQ(Chain(chain).attempts, 1);
}

TEST_F(DispatcherLeases, CommitsOfOneChainWaitForEachOther) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  std::vector<Answer<CommitReply>> answers(3);
  for (Answer<CommitReply>& answer : answers) {
    const ProgressCommit commit = worker.NextCommit(chain);
    dispatcher_->CommitProgress(worker.Made(commit), answer.reply());
    worker.Took(commit);
  }
  executor_.RunUntilIdle();
  for (const Answer<CommitReply>& answer : answers) EXPECT_TRUE(answer.get().ok()) << answer.get().status();
  EXPECT_EQ(Chain(chain).num_draws, 3);
}

TEST_F(DispatcherLeases, ReplyLeavesOnlyAfterTheCommit) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Answer<CommitReply> answer;
  dispatcher_->CommitProgress(worker.Made(worker.NextCommit(chain)), answer.reply());
  EXPECT_EQ(Chain(chain).num_draws, 0) << "tables change only after the commit";
  EXPECT_TRUE(store_->ListSegments({.job = chain.job})->empty());
  executor_.RunUntilIdle();
  EXPECT_TRUE(answer.get().ok());
  EXPECT_EQ(Chain(chain).num_draws, 1);
}

TEST_F(DispatcherLeases, SixAttemptsFail) {
  const ChainId chain{Create("job", 1), 0};
  FakeWorker worker("w1");
  for (int i = 1; i <= limits::kMaxAttemptsWithoutProgress; ++i) {
    for (int calls = 0; calls < 8 && !worker.chains.contains(chain); ++calls) Sync(&worker);
    ASSERT_TRUE(worker.chains.contains(chain)) << i;
    GiveBack(&worker, chain, ReleasedChain::Why::kFailed, "out of memory " + std::to_string(i));
  }
  EXPECT_TRUE(Sync(&worker).grants.empty());
  EXPECT_EQ(Chain(chain).state, ChainState::kFailed);
  EXPECT_THAT(Chain(chain).reason, HasSubstr("out of memory 6"));
  EXPECT_EQ(dispatcher_->GetJob(IdOf("job"))->state, JobState::kFailed);
}

TEST_F(DispatcherLeases, AChainWhoseJobIsWrongFailsAtOnce) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  GiveBack(&worker, chain, ReleasedChain::Why::kInvalid, "model.torchscript: gives Float [3, 2]");
  Sync(&worker);
  EXPECT_EQ(Chain(chain).state, ChainState::kFailed);
  EXPECT_THAT(Chain(chain).reason, HasSubstr("rejected the job: model.torchscript"));
}

TEST_F(DispatcherLeases, EachFailedAttemptDoublesTheDelayBeforeTheNext) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  absl::Duration delay = limits::kAttemptDelay;
  for (int attempt = 1; attempt < limits::kMaxAttemptsWithoutProgress; ++attempt, delay *= 2) {
    GiveBack(&worker, chain, ReleasedChain::Why::kFailed, "out of memory");
    Send(&worker);
    executor_.RunFor(delay - absl::Milliseconds(1));
    EXPECT_EQ(Chain(chain).state, ChainState::kPending) << attempt;
    executor_.RunFor(absl::Milliseconds(1) + limits::kPolicyInterval);
    EXPECT_EQ(Chain(chain).state, ChainState::kLeased) << attempt;
    Sync(&worker);
    ASSERT_TRUE(worker.chains.contains(chain)) << attempt;
  }
}

TEST_F(DispatcherLeases, CommitResetsTheAttempts) {
  const ChainId chain{Create("job", 1), 0};
  FakeWorker worker("w1");
  for (int i = 0; i < 3 * limits::kMaxAttemptsWithoutProgress; ++i) {
    Sync(&worker);
    ASSERT_TRUE(worker.chains.contains(chain)) << i;
    if (i % 3 == 2) Advance(&worker, chain);
    worker.Restart();
  }
  EXPECT_EQ(Chain(chain).num_draws, limits::kMaxAttemptsWithoutProgress);
}

TEST_F(DispatcherLeases, DivergedChainIsNotRetried) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ProgressCommit last = worker.NextCommit(chain);
  last.ends_as = ChainState::kDiverged;
  last.reason = "energy is not finite at step 10";
  ASSERT_TRUE(Commit(worker, last).ok());
  worker.Took(last);
  EXPECT_TRUE(Sync(&worker).grants.empty());
  EXPECT_EQ(Chain(chain).state, ChainState::kDiverged);
  EXPECT_EQ(Chain(chain).reason, "energy is not finite at step 10");
  EXPECT_EQ(dispatcher_->GetJob(IdOf("job"))->state, JobState::kFailed);
}

TEST_F(DispatcherLeases, MalformedCommitIsRefusedBeforeTheStore) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ProgressCommit no_draws = worker.NextCommit(chain), big = no_draws, bad_end = no_draws, stranger = no_draws;
  no_draws.segment->steps.clear();
  big.resume_point.inline_bytes.assign(limits::kInlineResumePointBytes + 1, 'x');
  bad_end.ends_as = ChainState::kLeased;
  stranger.chain.index = 7;
  EXPECT_TRUE(absl::IsInvalidArgument(Commit(worker, no_draws).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Commit(worker, big).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Commit(worker, bad_end).status()));
  EXPECT_EQ(ReasonOf(Commit(worker, stranger).status()), "LEASE_FENCED");
}

// A store that was restored twice issues the same epochs again; the store's incarnation distinguishes them.
TEST_F(DispatcherLeases, ACommitUnderALeaseOfAnotherStoreIsFenced) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ProgressCommit commit = worker.NextCommit(chain);
  commit.segment.reset();
  commit.store_incarnation = "incarnation-0";
  EXPECT_EQ(ReasonOf(Commit(worker, commit).status()), "LEASE_FENCED");
  EXPECT_THAT(Sync(&worker).keep, ElementsAre(chain));
  commit.store_incarnation = "incarnation-1";
  EXPECT_TRUE(Commit(worker, commit).ok());
}

TEST_F(DispatcherLeases, WallClockStepsChangeNoLease) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  clock_.JumpWall(absl::Hours(7));
  EXPECT_THAT(Sync(&worker).keep, ElementsAre(chain));
  clock_.JumpWall(-absl::Hours(48));
  executor_.RunFor(absl::Seconds(1));
  EXPECT_THAT(Sync(&worker).keep, ElementsAre(chain));
}

}  // namespace
}  // namespace chainfleet
