// The checks of a commit, in their order, on every store.
#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

class CommitChecks : public StateStoreTest {
 protected:
  CommitChecks() {
    Create(chain_.job, 2);
    row_ = Grant(chain_, 1).chains.at(0);
  }
  ApplyResult CommitTo(int64_t step) {
    ApplyResult result = Apply(CommitAt(row_, step));
    EXPECT_TRUE(result.status.ok()) << result.status;
    row_ = result.chains.at(0);
    return result;
  }
  ApplyResult CommitEnding(int64_t step, ChainState state) {
    change::CommitProgress c = CommitAt(row_, step);
    c.ends_as = state;
    c.reason = "as told";
    return Apply(c);
  }
  ChainRow row_;
};

TEST_P(CommitChecks, MovesSegmentAndResumePointTogether) {
  CommitTo(10);
  CommitTo(20);
  EXPECT_EQ(row_.step, 20);
  EXPECT_EQ(row_.num_draws, 2);
  EXPECT_EQ(row_.last_digest, DigestOf(3020));
  const auto records = store_->ListSegments({.job = chain_.job}).value();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].segment.parent_digest, records[0].segment.digest);
  EXPECT_EQ(records[1].author.worker, "w1");
  EXPECT_EQ(records[1].author.host, "host");
  EXPECT_EQ(records[1].lease_epoch, 1);
  EXPECT_EQ(records[1].committed_at, wall_);
  EXPECT_EQ(Grant(chain_, 1).resume_point->step, 20);
}

TEST_P(CommitChecks, RefusesEverythingOfALostGeneration) {
  const auto successor = harness_->Open();
  EXPECT_GT(successor->generation(), store_->generation());
  const auto results = store_->Apply(std::vector<StateChange>{CommitAt(row_, 10)}, wall_);
  EXPECT_TRUE(absl::IsUnavailable(results.status()));
  EXPECT_EQ(ReasonOf(results.status()), "NOT_LEADER");
  EXPECT_TRUE(successor->ListSegments({.job = chain_.job})->empty());
}

TEST_P(CommitChecks, ReplayedCommitIsOkAndChangesNothing) {
  const change::CommitProgress first = CommitAt(row_, 10);
  CommitTo(10);
  const ApplyResult again = Apply(first);
  EXPECT_TRUE(again.status.ok());
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.chains.at(0).num_draws, 1);
}

TEST_P(CommitChecks, ReplayIsFoundBeforeTheFence) {
  const change::CommitProgress first = CommitAt(row_, 10);
  CommitTo(10);
  Apply(change::EndLease{chain_, 1, false, false, "expired"});
  Grant(chain_, 2, "w2");
  EXPECT_TRUE(Apply(first).replayed);
}

TEST_P(CommitChecks, ReplayIsFoundWhenTheChainIsFinal) {
  change::CommitProgress last = CommitAt(row_, 10);
  last.ends_as = ChainState::kSucceeded;
  EXPECT_TRUE(Apply(last).status.ok());
  EXPECT_TRUE(Apply(last).replayed);
}

TEST_P(CommitChecks, ReplayWithoutASegmentIsKnownByItsResumePoint) {
  change::CommitProgress c = CommitAt(row_, 10);
  c.segment.reset();
  EXPECT_FALSE(Apply(c).replayed);
  EXPECT_TRUE(Apply(c).replayed);
}

TEST_P(CommitChecks, RefusesCommitFromOldEpoch) {
  CommitTo(10);
  Apply(change::EndLease{chain_, 1, false, false, "expired"});
  Grant(chain_, 2, "w2");
  const ApplyResult late = Apply(CommitAt(row_, 20));
  EXPECT_TRUE(absl::IsFailedPrecondition(late.status));
  EXPECT_EQ(ReasonOf(late.status), "LEASE_FENCED");
}

TEST_P(CommitChecks, RefusesAForgedEpoch) {
  change::CommitProgress future = CommitAt(row_, 10);
  future.lease_epoch = 2;
  EXPECT_EQ(ReasonOf(Apply(future).status), "LEASE_FENCED");
  change::CommitProgress stranger = CommitAt(row_, 10);
  stranger.author.worker = "w2";
  EXPECT_EQ(ReasonOf(Apply(stranger).status), "LEASE_FENCED");
}

TEST_P(CommitChecks, FenceComesBeforeFinality) {
  ASSERT_TRUE(CommitEnding(10, ChainState::kDiverged).status.ok());
  change::CommitProgress old = CommitAt(row_, 20);
  old.lease_epoch = 0;
  EXPECT_EQ(ReasonOf(Apply(old).status), "LEASE_FENCED");
}

TEST_P(CommitChecks, RefusesCommitToAFinalChain) {
  const ApplyResult end = CommitEnding(10, ChainState::kDiverged);
  EXPECT_EQ(end.chains.at(0).state, ChainState::kDiverged);
  EXPECT_EQ(end.chains.at(0).reason, "as told");
  const ApplyResult late = Apply(CommitAt(end.chains.at(0), 20));
  EXPECT_TRUE(absl::IsFailedPrecondition(late.status));
  EXPECT_EQ(ReasonOf(late.status), "CHAIN_FINAL");
}

TEST_P(CommitChecks, FinalityComesBeforeThePath) {
  ASSERT_TRUE(CommitEnding(10, ChainState::kSucceeded).status.ok());
  change::CommitProgress off = CommitAt(row_, 20);
  off.segment->first_index = 7;
  EXPECT_EQ(ReasonOf(Apply(off).status), "CHAIN_FINAL");
}

TEST_P(CommitChecks, RefusesACommitThatIsNotNextOnThePath) {
  CommitTo(10);
  change::CommitProgress gap = CommitAt(row_, 20), fork = gap, back = gap, ahead = gap, other = gap;
  gap.segment->first_index = 2;
  fork.segment->parent_digest = FirstParentDigest();
  back.resume_point.step = back.segment->steps[0] = 10;
  ahead.segment->steps[0] = 21;
  other.segment->first_index = 0;  // recorded with another digest
  for (const change::CommitProgress& c : {gap, fork, back, ahead, other}) {
    const ApplyResult result = Apply(c);
    EXPECT_TRUE(absl::IsAborted(result.status)) << result.status;
    EXPECT_EQ(ReasonOf(result.status), "PATH_CONFLICT");
  }
  EXPECT_EQ(store_->ListSegments({.job = chain_.job})->size(), 1u);
  EXPECT_EQ(RowOf(chain_).step, 10);
}

TEST_P(CommitChecks, KeepsWhoCommittedTheResumePoint) {
  change::CommitProgress c = CommitAt(row_, 10);
  ResumeProof& proof = c.resume_point.proof.emplace();
  proof.name = "resume-10";
  proof.last_digest = c.segment->digest;
  proof.signature = "signature";
  proof.certificate = "certificate";
  proof.committed_at = wall_ + absl::Nanoseconds(7);
  ASSERT_TRUE(Apply(c).status.ok());
  const ApplyResult granted = Grant(chain_, 1);
  EXPECT_EQ(granted.resume_point, c.resume_point);
  EXPECT_FALSE(granted.newest_segment.has_value());
  const auto listed = store_->ListResumePoints(chain_.job).value();
  ASSERT_EQ(listed.size(), 1u) << "the other chain has none";
  EXPECT_EQ(listed[0].chain, 0);
  EXPECT_EQ(listed[0].step, 10);
  EXPECT_EQ(listed[0].sha256, c.resume_point.sha256);
  EXPECT_EQ(listed[0].last_digest, c.segment->digest);
  EXPECT_EQ(listed[0].proof, proof);
}

TEST_P(CommitChecks, AGrantWithoutAProofHasTheNewestDraws) {
  EXPECT_FALSE(Grant(chain_, 1).newest_segment.has_value()) << "there are none";
  CommitTo(10);
  CommitTo(20);
  const ApplyResult granted = Grant(chain_, 1);
  ASSERT_TRUE(granted.newest_segment.has_value());
  EXPECT_EQ(granted.newest_segment->segment.digest, row_.last_digest);
  EXPECT_EQ(granted.newest_segment->author.worker, "w1");
}

TEST_P(CommitChecks, RefusesAResumePointThatIsSignedToFollowOtherDraws) {
  CommitTo(10);
  change::CommitProgress with_draws = CommitAt(row_, 20), alone = with_draws;
  alone.segment.reset();
  with_draws.resume_point.proof.emplace().last_digest = row_.last_digest;  // not those of the commit
  alone.resume_point.proof.emplace().last_digest = DigestOf(3020);
  EXPECT_EQ(ReasonOf(Apply(with_draws).status), "PATH_CONFLICT");
  EXPECT_EQ(ReasonOf(Apply(alone).status), "PATH_CONFLICT");
  alone.resume_point.proof->last_digest = row_.last_digest;
  EXPECT_TRUE(Apply(alone).status.ok());
}

TEST_P(CommitChecks, AcceptsCommitAfterTheLeaseEndedUntilTheNextGrant) {
  Apply(change::EndLease{chain_, 1, false, false, "expired"});
  EXPECT_EQ(RowOf(chain_).attempts, 1);
  CommitTo(10);
  EXPECT_EQ(row_.state, ChainState::kPending);
  EXPECT_EQ(row_.attempts, 0);
  EXPECT_EQ(Grant(chain_, 1).chains.at(0).state, ChainState::kLeased);
}

TEST_P(CommitChecks, CrashesInCompanyCountUntilTheChainIsASuspectAndCrashesAloneAlways) {
  using Crash = change::EndLease::Crash;
  int64_t epoch = 1;
  const auto end = [&](Crash crash) {
    const ChainRow row = Apply(change::EndLease{chain_, epoch, false, true, "lost", crash}).chains.at(0);
    if (row.state == ChainState::kPending) Grant(chain_, ++epoch);
    return row;
  };
  EXPECT_EQ(end(Crash::kInCompany).attempts, 1);
  EXPECT_FALSE(RowOf(chain_).suspect());
  EXPECT_EQ(end(Crash::kInCompany).attempts, 2);
  EXPECT_TRUE(RowOf(chain_).suspect());
  EXPECT_EQ(end(Crash::kInCompany).attempts, 2);
  EXPECT_EQ(end(Crash::kAlone).attempts, 3);
  EXPECT_EQ(end(Crash::kNone).attempts, 4) << "a failure that the worker tells of";
  EXPECT_EQ(end(Crash::kAlone).attempts, 5);
  EXPECT_EQ(end(Crash::kAlone).state, ChainState::kFailed);
}

TEST_P(CommitChecks, CrashInCompanyFailsNoChain) {
  for (int64_t epoch = 1; epoch < limits::kMaxAttemptsWithoutProgress; ++epoch) {
    Apply(change::EndLease{chain_, epoch, false, true, "out of memory"});
    Grant(chain_, epoch + 1);
  }
  const ChainRow row = Apply(change::EndLease{chain_, limits::kMaxAttemptsWithoutProgress, false, true, "lost",
                                              change::EndLease::Crash::kInCompany})
                           .chains.at(0);
  EXPECT_EQ(row.state, ChainState::kPending);
  EXPECT_EQ(row.attempts, limits::kMaxAttemptsWithoutProgress - 1);
}

TEST_P(CommitChecks, CommitClearsSuspicionAndLeasesThatCommittedRaiseNone) {
  const auto crash = [&](int64_t epoch) {
    return Apply(change::EndLease{chain_, epoch, false, true, "lost", change::EndLease::Crash::kInCompany})
        .chains.at(0);
  };
  CommitTo(10);
  EXPECT_EQ(crash(1).crashes, 0);
  Grant(chain_, 2);
  crash(2);
  row_ = Grant(chain_, 3).chains.at(0);
  EXPECT_TRUE(crash(3).suspect());
  row_ = Grant(chain_, 4).chains.at(0);
  EXPECT_TRUE(row_.suspect()) << "a grant clears nothing";
  CommitTo(20);
  EXPECT_EQ(row_.crashes, 0);
  EXPECT_EQ(row_.attempts, 0);
}

TEST_P(CommitChecks, HandedBackChainIsPendingAndItsHolderGone) {
  ASSERT_TRUE(CommitEnding(10, ChainState::kPending).status.ok());
  const ChainRow row = RowOf(chain_);
  EXPECT_EQ(row.state, ChainState::kPending);
  EXPECT_EQ(row.worker, "");
  EXPECT_EQ(row.lease_epoch, 1);
  EXPECT_EQ(ReasonOf(Apply(CommitAt(row_, 20)).status), "LEASE_FENCED");
}

TEST_P(CommitChecks, ChainMayBeHandedBackAtItsCommittedStep) {
  CommitTo(10);
  change::CommitProgress c = CommitAt(row_, 10);
  c.segment.reset();
  c.ends_as = ChainState::kPending;
  const ApplyResult result = Apply(c);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_FALSE(result.replayed);
  EXPECT_EQ(RowOf(chain_).state, ChainState::kPending);
  EXPECT_TRUE(Apply(c).replayed);
}

TEST_P(CommitChecks, RefusesCommitToAnUnknownChain) {
  change::CommitProgress c = CommitAt(row_, 10);
  c.chain.job = "nowhere-bbbbbb";
  EXPECT_EQ(ReasonOf(Apply(c).status), "LEASE_FENCED");
}

TEST_P(CommitChecks, SupersededResumePointBecomesGarbageInTheSameTransaction) {
  change::CommitProgress c = CommitAt(row_, 10);
  c.resume_point.object = BlobRef{"resume-10", 5, DigestOf(1)};
  row_ = Apply(c).chains.at(0);
  EXPECT_TRUE(Garbage().empty());
  EXPECT_THAT(store_->ReferencesOfChain(chain_)->objects, testing::Contains("resume-10"));
  change::CommitProgress next = CommitAt(row_, 20);
  next.resume_point.object = BlobRef{"resume-20", 5, DigestOf(2)};
  ASSERT_TRUE(Apply(next).status.ok());
  EXPECT_THAT(Garbage(), testing::ElementsAre("resume-10"));
  Apply(change::ForgetGarbage{{"resume-10"}});
  EXPECT_TRUE(Garbage().empty());
}

INSTANTIATE_TEST_SUITE_P(AllStores, CommitChecks, testing::ValuesIn(StoreKinds()), StoreKindName);

}  // namespace
}  // namespace chainfleet
