#include "server/control/commit_check.h"

#include "server/control/chain_objects.h"
#include "server/control/garbage_collector.h"
#include "tests/server/control/dispatcher_fixture.h"
#include "tests/support/forwarding_blobs.h"
#include "tests/support/memory_blob_store.h"

namespace chainfleet {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr char kStore[] = "incarnation-1";

class CommitCheckTest : public DispatcherTest {
 protected:
  // Returns the next commit of the chain that worker_ holds; its resume point is an object.
  ProgressCommit Next() {
    ProgressCommit commit = worker_.NextCommit(chain_);
    commit.resume_point.inline_bytes.clear();
    commit.resume_point.object =
        BlobRef{ResumeObjectName(kStore, chain_, commit.lease_epoch, commit.resume_point.sha256), 5,
                commit.resume_point.sha256};
    return commit;
  }
  // Returns commits that are correct except for the name of a foreign object.
  std::vector<ProgressCommit> Misnamed() {
    std::vector<ProgressCommit> commits;
    const ProgressCommit right = Next();
    const DigestHex digest = right.segment->digest, sha256 = right.resume_point.sha256;
    const int64_t epoch = right.lease_epoch;
    const ChainId other{chain_.job, chain_.index + 1};
    for (const std::string& name :
         {SegmentObjectName(kStore, other, epoch, digest), SegmentObjectName(kStore, chain_, epoch - 1, digest),
          SegmentObjectName("incarnation-0", chain_, epoch, digest), ResumeObjectName(kStore, chain_, epoch, digest),
          SegmentObjectName(kStore, chain_, epoch, DigestOf(7)), DatasetObjectName(kStore, digest, 7),
          std::string("../state.db")}) {
      commits.push_back(right);
      commits.back().segment->object.name = name;
    }
    for (const std::string& name :
         {ResumeObjectName(kStore, other, epoch, sha256), ResumeObjectName(kStore, chain_, epoch - 1, sha256),
          ResumeObjectName("incarnation-0", chain_, epoch, sha256), SegmentObjectName(kStore, chain_, epoch, sha256),
          ResumeObjectName(kStore, chain_, epoch, DigestOf(7)), DatasetObjectName(kStore, sha256, 7), std::string()}) {
      commits.push_back(right);
      commits.back().resume_point.object->name = name;
    }
    return commits;
  }
  static std::string WrongNameOf(const ProgressCommit& commit) {
    const std::string& point = commit.resume_point.object->name;
    return point == ResumeObjectName(kStore, commit.chain, commit.lease_epoch, commit.resume_point.sha256)
               ? commit.segment->object.name
               : point;
  }
  void GrantElsewhere() {
    executor_.RunFor(kTermAndGrace);
    FakeWorker other("w2");
    Sync(&other);
    ASSERT_TRUE(other.chains.contains(chain_));
  }

  FakeWorker worker_{"w1"};
  const ChainId chain_ = LeaseOne(&worker_);
};

TEST_F(CommitCheckTest, ACommitNamesNothingButItsChainsObjectsOfItsEpoch) {
  for (const ProgressCommit& commit : Misnamed()) {
    const absl::Status refused = Commit(worker_, commit).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_EQ(ReasonOf(refused), "INVALID_FIELD");
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr(ToString(chain_)), HasSubstr('"' + WrongNameOf(commit) + '"'), HasSubstr("put it as")));
  }
  EXPECT_EQ(Chain(chain_).num_draws, 0);
  EXPECT_TRUE(Commit(worker_, Next()).ok());
}

TEST_F(CommitCheckTest, AResumePointIsSignedUnderTheNameThatItsObjectHas) {
  for (const ResumePoint& point : {Next().resume_point, worker_.NextCommit(chain_).resume_point}) {
    ProgressCommit commit = worker_.NextCommit(chain_);
    const int64_t step = std::exchange(commit.resume_point, point).step;
    commit.resume_point.step = step;
    ResumeProof& proof = commit.resume_point.proof.emplace();
    proof.last_digest = commit.segment->digest;
    for (const std::string& name :
         {ResumeObjectName(kStore, {chain_.job, chain_.index + 1}, commit.lease_epoch, point.sha256),
          ResumeObjectName(kStore, chain_, commit.lease_epoch - 1, point.sha256),
          ResumeObjectName(kStore, chain_, commit.lease_epoch, DigestOf(7)), std::string()}) {
      proof.name = name;
      const absl::Status refused = Commit(worker_, commit).status();
      EXPECT_EQ(ReasonOf(refused), "INVALID_FIELD") << refused;
      EXPECT_THAT(std::string(refused.message()), HasSubstr("resume_point.proof"));
    }
    proof.name = ResumeObjectName(kStore, chain_, commit.lease_epoch, point.sha256);
    ASSERT_TRUE(Commit(worker_, commit).ok());
    worker_.Took(commit);
  }
}

// Otherwise the next commit would supersede the resume point and turn the draw into garbage.
TEST_F(CommitCheckTest, ACommittedDrawCannotBecomeAResumePoint) {
  MemoryBlobStore blobs;
  const ChainId other{Create("other", 1), 0};
  Sync(&worker_);
  Sync(&worker_);
  ASSERT_TRUE(worker_.chains.contains(other));
  const ProgressCommit draw = worker_.NextCommit(chain_);
  ASSERT_TRUE(blobs.Put(draw.segment->object.name, "0123456789").ok());
  ASSERT_TRUE(Commit(worker_, draw).ok());
  ProgressCommit theft = worker_.NextCommit(other);
  theft.resume_point.inline_bytes.clear();
  theft.resume_point.object = draw.segment->object;
  theft.resume_point.sha256 = draw.segment->object.sha256;
  if (Commit(worker_, theft).ok()) worker_.Took(theft);
  Advance(&worker_, other);
  ASSERT_TRUE(GarbageCollector(&executor_, store_.get(), writer_, &blobs).Collect().ok());
  EXPECT_THAT(blobs.List("").value(), Contains(draw.segment->object.name));
}

TEST_F(CommitCheckTest, TheStoreReportsWhyACommitWithoutItsLeaseFails) {
  GrantElsewhere();
  for (const ProgressCommit& commit : Misnamed()) EXPECT_EQ(ReasonOf(Commit(worker_, commit).status()), "LEASE_FENCED");
  ProgressCommit damaged = worker_.NextCommit(chain_);
  damaged.resume_point.inline_bytes = "statf";
  EXPECT_EQ(ReasonOf(Commit(worker_, damaged).status()), "LEASE_FENCED");
}

TEST_F(CommitCheckTest, TheStoreReportsThatAChainHasEnded) {
  ASSERT_TRUE(SetIntent("job", JobIntent::kCancel).ok());
  for (const ProgressCommit& commit : Misnamed()) EXPECT_EQ(ReasonOf(Commit(worker_, commit).status()), "CHAIN_FINAL");
}

TEST_F(CommitCheckTest, AReplayIsKnownAgainUnderLaterEpochsAndInARestoredStore) {
  const ProgressCommit commit = Next();
  ASSERT_TRUE(Commit(worker_, commit).ok());
  EXPECT_TRUE(Commit(worker_, commit)->replayed);
  GrantElsewhere();
  EXPECT_TRUE(Commit(worker_, commit)->replayed);
  coordinator_.reset();
  store_ = database_.OpenRestored("incarnation-2");
  StartOn(store_.get());
  const absl::StatusOr<CommitReply> again = Commit(worker_, commit);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->replayed) << "by the names of its former incarnation";
  worker_.Took(commit);
  EXPECT_EQ(ReasonOf(Commit(worker_, Next()).status()), "LEASE_FENCED");
}

TEST_F(CommitCheckTest, ACommitThatWaitedForAnotherIsRefusedAsWell) {
  const ProgressCommit first = worker_.NextCommit(chain_);
  Answer<CommitReply> accepted, refused;
  dispatcher_->CommitProgress(worker_.Made(first), accepted.reply());
  worker_.Took(first);
  dispatcher_->CommitProgress(worker_.Made(Misnamed().front()), refused.reply());
  executor_.RunUntilIdle();
  EXPECT_TRUE(accepted.get().ok());
  EXPECT_EQ(ReasonOf(refused.get().status()), "INVALID_FIELD");
  EXPECT_EQ(Chain(chain_).num_draws, 1);
}

TEST_F(CommitCheckTest, AResumePointIsInlineOrAnObject) {
  ProgressCommit both = Next(), other_bytes = Next();
  both.resume_point.inline_bytes = "state";
  other_bytes.resume_point.object->sha256 = DigestOf(7);
  for (const ProgressCommit& commit : {both, other_bytes}) {
    const absl::Status refused = Commit(worker_, commit).status();
    EXPECT_EQ(ReasonOf(refused), "INVALID_FIELD");
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr(ToString(chain_)), HasSubstr(commit.resume_point.object->name), HasSubstr(": send")));
  }
  ProgressCommit none = Next();
  none.resume_point.object.reset();
  EXPECT_TRUE(Commit(worker_, none).ok()) << "as before";
}

TEST_F(CommitCheckTest, InlineBytesThatWereDamagedAreSentAgain) {
  ProgressCommit commit = worker_.NextCommit(chain_);
  commit.resume_point.inline_bytes = "statf";
  const absl::Status damaged = Commit(worker_, commit).status();
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_EQ(ReasonOf(damaged), "DIGEST_MISMATCH");
  EXPECT_THAT(std::string(damaged.message()), AllOf(HasSubstr(ToString(chain_)), HasSubstr("send them again")));
  EXPECT_EQ(Chain(chain_).num_draws, 0);
  commit.resume_point.inline_bytes = "state";
  EXPECT_TRUE(Commit(worker_, commit).ok());
}

TEST_F(CommitCheckTest, OnlyCorrectlyNamedObjectsAreLookedUp) {
  MemoryBlobStore blobs;
  const ChainObjects objects(store_.get(), &blobs, writer_, *dispatcher_);
  EXPECT_TRUE(objects.MustPrepare(worker_.Made(Next())));
  for (const ProgressCommit& commit : Misnamed()) EXPECT_FALSE(objects.MustPrepare(worker_.Made(commit)));
  ProgressCommit inline_only = worker_.Made(worker_.NextCommit(chain_));
  EXPECT_TRUE(objects.MustPrepare(inline_only)) << "its segment";
  inline_only.segment.reset();
  EXPECT_FALSE(objects.MustPrepare(inline_only));
  ProgressCommit stranger = worker_.Made(Next());
  stranger.incarnation = "another";
  EXPECT_FALSE(objects.MustPrepare(stranger)) << "it writes nothing";
}

TEST_F(CommitCheckTest, WhereObjectsAreEncryptedNoStateReachesTheStateStore) {
  class EncryptingBlobs final : public ForwardingBlobs {
   public:
    bool encrypts() const override { return true; }
  } encrypting;
  const ChainObjects objects(store_.get(), &encrypting, writer_, *dispatcher_);
  ProgressCommit commit = worker_.Made(worker_.NextCommit(chain_));
  commit.segment.reset();
  const std::string state = commit.resume_point.inline_bytes;
  ASSERT_TRUE(objects.MustPrepare(commit));
  ProgressCommit damaged = commit;
  damaged.resume_point.inline_bytes += "?";
  EXPECT_EQ(ReasonOf(objects.Prepare(&damaged)), "DIGEST_MISMATCH");
  ASSERT_TRUE(objects.Prepare(&commit).ok());
  EXPECT_EQ(commit.resume_point.inline_bytes, "");
  ASSERT_TRUE(commit.resume_point.object);
  EXPECT_EQ(encrypting.Get(commit.resume_point.object->name).value(), state);
  EXPECT_TRUE(Commit(worker_, commit).ok());
}

}  // namespace
}  // namespace chainfleet
