#include "worker/runtime/session/draw_uploader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/segment_codec.h"
#include "core/store/draw_codec/sha256.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/lossy_port.h"
#include "tests/support/worker_fixture.h"

namespace chainfleet {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class DrawUploaderTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  FakeCoordinator server_{&executor_};
  HeldChains held_{&clock_};
  CountingObserver observer_;
  DrawUploader uploader_{{{.worker = "w0"}, "w0-1", 4096, RngKey{1}}, &server_, &held_, &executor_, &observer_};
  const LeaseRef lease_{{"job-a", 0}, 1};

  void SetUp() override { OpenChain(lease_); }

  void OpenChain(const LeaseRef& lease) {
    auto& chain = server_.chains[lease.chain];
    chain.plan = AnalyticPlan(lease.chain.job, 4);
    chain.epoch = lease.epoch;
    chain.state = ChainState::kLeased;
    const LeasedChain leased{{lease.chain, lease.epoch, chain.plan, chain.progress}, "store"};
    held_.Add(leased, LeaseDeadline(clock_.Monotonic(), absl::Minutes(1)));
    uploader_.Open(leased, {{"theta", {8}, 0, 1}});
  }

  // Returns `count` draws, one for each step, up to `step`.
  static ProgressUpload Upload(int64_t step, int64_t count) {
    ProgressUpload upload;
    upload.commit.resume_point.step = step;
    upload.commit.resume_point.inline_bytes = "state at " + std::to_string(step);
    for (int64_t s = step - count + 1; s <= step; ++s) {
      const std::vector<float> theta(8, static_cast<float>(s));
      upload.draws.push_back({s, 1, {theta, theta}});
    }
    return upload;
  }
  bool Offer(int64_t step, int64_t count) {
    ProgressUpload upload = Upload(step, count);
    return uploader_.Offer(lease_, &upload);
  }
  const FakeCoordinator::Chain& chain() { return server_.chains[lease_.chain]; }
};

TEST_F(DrawUploaderTest, CommitsInOrderWithIndicesAndParentsLinked) {
  for (int64_t step = 2; step <= 12; step += 2) ASSERT_TRUE(Offer(step, 2));
  executor_.RunUntilIdle();
  ASSERT_THAT(chain().segments, SizeIs(6));
  DigestHex parent = FirstParentDigest();
  int64_t index = 0;
  for (const Segment& segment : chain().segments) {
    EXPECT_EQ(segment.first_index, index);
    EXPECT_EQ(segment.parent_digest, parent);
    EXPECT_TRUE(CheckSegment(segment).ok()) << CheckSegment(segment);
    index += segment.num_draws();
    parent = segment.digest;
  }
  EXPECT_EQ(server_.max_commits_in_flight, 1);
  EXPECT_EQ(uploader_.queued_bytes(), 0);
  EXPECT_EQ(observer_.draws_committed, 12);
}

TEST_F(DrawUploaderTest, PutsTheBytesThatTheRecordNames) {
  Offer(3, 3);
  executor_.RunUntilIdle();
  ASSERT_THAT(chain().segments, SizeIs(1));
  const Segment& segment = chain().segments[0];
  const std::string& bytes = server_.blobs.at(segment.object.name);
  EXPECT_EQ(Sha256Hex(bytes), segment.object.sha256);
  const auto content = DecodeSegment(bytes);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->segment.digest, segment.digest);
  EXPECT_EQ(content->draws[2].theta[1][0], 3.0f);
}

TEST_F(DrawUploaderTest, SendsASmallResumePointInlineAndABigOneAsAnObject) {
  Offer(1, 0);
  ProgressUpload big = Upload(2, 0);
  big.commit.resume_point.inline_bytes.assign(static_cast<size_t>(limits::kInlineResumePointBytes), 'x');
  executor_.RunUntilIdle();
  EXPECT_EQ(chain().progress.resume_point->inline_bytes, "state at 1");
  ASSERT_TRUE(uploader_.Offer(lease_, &big));
  executor_.RunUntilIdle();
  ASSERT_TRUE(chain().progress.resume_point->object.has_value());
  EXPECT_THAT(chain().progress.resume_point->inline_bytes, IsEmpty());
  EXPECT_EQ(server_.blobs.at(chain().progress.resume_point->object->name).size(),
            static_cast<size_t>(limits::kInlineResumePointBytes));
}

TEST_F(DrawUploaderTest, EachResumePointNamesTheDrawsThatItFollows) {
  const auto proof_after = [&](int64_t step, int64_t draws) {
    Offer(step, draws);
    executor_.RunUntilIdle();
    return *chain().progress.resume_point->proof;
  };
  const ResumeProof first = proof_after(1, 0);
  EXPECT_EQ(first.last_digest, FirstParentDigest());
  EXPECT_EQ(first.name, ResumeObjectName("store", lease_.chain, lease_.epoch, Sha256Hex("state at 1")));
  const ResumeProof second = proof_after(2, 1), third = proof_after(3, 0);
  EXPECT_EQ(second.last_digest, chain().segments.at(0).digest) << "those of its own commit";
  EXPECT_EQ(third.last_digest, chain().segments.at(0).digest) << "those of an earlier one";
}

TEST_F(DrawUploaderTest, RefusesWhenFullAndTakesTheSameUploadLater) {
  ASSERT_TRUE(Offer(40, 40));  // 2,560 bytes and the resume point
  ProgressUpload next = Upload(80, 40);
  EXPECT_FALSE(uploader_.Offer(lease_, &next));
  EXPECT_THAT(next.draws, SizeIs(40));
  executor_.RunUntilIdle();
  EXPECT_TRUE(uploader_.Offer(lease_, &next));
  executor_.RunUntilIdle();
  EXPECT_EQ(chain().progress.num_draws, 80);
}

TEST_F(DrawUploaderTest, TakesAnythingIntoAnEmptyQueue) {
  EXPECT_TRUE(Offer(200, 200));
  executor_.RunUntilIdle();
  EXPECT_EQ(chain().progress.num_draws, 200);
}

TEST_F(DrawUploaderTest, RepeatsThroughAnOutageOfAnyLength) {
  server_.put_failures.assign(50, absl::UnavailableError("down"));
  server_.commit_failures.assign(50, absl::DeadlineExceededError("slow"));
  Offer(2, 2);
  executor_.RunFor(absl::Minutes(10));
  EXPECT_EQ(chain().progress.num_draws, 2);
  EXPECT_TRUE(held_.Holds(lease_));
}

TEST_F(DrawUploaderTest, WaitsForRoomInAFullStoreAndInAFullQueue) {
  int64_t draws = 0;
  for (const char* reason : {"DISK_FULL", "QUEUE_FULL"}) {
    server_.commit_failures.assign(20, WithReason(absl::ResourceExhaustedError("full"), reason));
    Offer(draws + 2, 2);
    executor_.RunFor(absl::Seconds(30));
    EXPECT_EQ(chain().progress.num_draws, draws) << reason;
    EXPECT_TRUE(held_.Holds(lease_)) << reason;
    EXPECT_LT(server_.commit_failures.size(), 18u) << reason << ": it is tried again";
    EXPECT_GT(server_.commit_failures.size(), 5u) << reason << ": with backoff";
    executor_.RunFor(absl::Minutes(5));
    EXPECT_EQ(chain().progress.num_draws, draws += 2) << reason;
  }
}

TEST_F(DrawUploaderTest, DropsAFencedChainAndAllThatIsQueuedForIt) {
  Offer(2, 2);
  Offer(4, 2);
  server_.FenceByGrantElsewhere(lease_.chain);
  executor_.RunFor(absl::Minutes(1));
  EXPECT_FALSE(held_.Holds(lease_));
  EXPECT_EQ(uploader_.queued_bytes(), 0);
  EXPECT_THAT(server_.commits, IsEmpty());
  EXPECT_THAT(held_.MakeReport().released, IsEmpty());
}

TEST_F(DrawUploaderTest, DropsAChainWhosePathConflicts) {
  server_.commit_failures.push_back(WithReason(absl::AbortedError("parent"), "PATH_CONFLICT"));
  Offer(2, 2);
  executor_.RunUntilIdle();
  EXPECT_FALSE(held_.Holds(lease_));
}

TEST_F(DrawUploaderTest, PutsAMissingObjectAgain) {
  Offer(2, 2);
  server_.commit_failures.push_back(WithReason(absl::FailedPreconditionError("gone"), "BLOB_MISSING"));
  executor_.RunFor(absl::Seconds(10));
  EXPECT_EQ(chain().progress.num_draws, 2);
}

TEST_F(DrawUploaderTest, GivesTheChainBackWhenObjectsStayMissing) {
  server_.commit_failures.assign(limits::kUploadAttempts,
                                 WithReason(absl::FailedPreconditionError("gone"), "BLOB_MISSING"));
  Offer(2, 2);
  executor_.RunFor(absl::Minutes(10));
  const auto report = held_.MakeReport();
  ASSERT_THAT(report.released, SizeIs(1));
  EXPECT_EQ(report.released[0].why, ReleasedChain::Why::kStore);
}

// A failing disk or server says nothing about the chain.
TEST_F(DrawUploaderTest, RetriesFaultsOfTheStore) {
  server_.put_failures.assign(2 * limits::kUploadAttempts, absl::InternalError("input/output error"));
  server_.commit_failures.assign(2 * limits::kUploadAttempts, absl::UnknownError("no words"));
  Offer(2, 2);
  executor_.RunFor(absl::Minutes(10));
  EXPECT_EQ(chain().progress.num_draws, 2);
  EXPECT_THAT(held_.MakeReport().released, SizeIs(0));
}

// A resume point whose reply was lost is stored already when it is sent again.
TEST_F(DrawUploaderTest, KnowsItsOwnResumePointWhenTheAnswerWasLost) {
  LossyPort lossy(&server_, &executor_, &executor_, 1);
  DrawUploader uploader({{.worker = "w0"}, "w0-1", 4096, RngKey{1}}, &lossy, &held_, &executor_, &observer_);
  uploader.Open({{lease_.chain, 1, chain().plan, {}}, "store"}, {{"theta", {8}, 0, 1}});
  lossy.SetFaults({.drop_reply = 1});
  ProgressUpload first = Upload(5, 0), second = Upload(9, 2);
  uploader.Offer(lease_, &first);
  uploader.Offer(lease_, &second);
  executor_.RunFor(absl::Seconds(5));
  EXPECT_EQ(chain().progress.step, 5);
  lossy.SetFaults({});
  executor_.RunFor(absl::Minutes(1));
  EXPECT_TRUE(held_.Holds(lease_));
  EXPECT_EQ(chain().progress.step, 9);
}

// A restored store may grant the same epoch again. Uploads that wait for a retry under the first grant do not belong to
// it.
TEST_F(DrawUploaderTest, UploadsOfADroppedLeaseAreNotSentUnderAnEqualOne) {
  server_.commit_failures.push_back(absl::UnavailableError("down"));
  Offer(5, 0);
  executor_.RunUntilIdle();
  EXPECT_THAT(server_.commit_failures, IsEmpty());
  uploader_.Drop(lease_);
  held_.Drop(lease_);
  OpenChain(lease_);
  executor_.RunFor(absl::Minutes(1));
  EXPECT_EQ(chain().progress.step, 0);
  ASSERT_TRUE(Offer(3, 2));
  executor_.RunFor(absl::Minutes(1));
  EXPECT_EQ(chain().progress.step, 3);
  EXPECT_EQ(uploader_.queued_bytes(), 0);
}

TEST_F(DrawUploaderTest, CommitsSayWhichStoreTheirLeaseIsOf) {
  Offer(1, 0);
  executor_.RunUntilIdle();
  ASSERT_THAT(server_.commits, SizeIs(1));
  EXPECT_EQ(server_.commits[0].store_incarnation, "store");
}

TEST_F(DrawUploaderTest, EndsTheLeaseWithItsLastCommit) {
  ProgressUpload last = Upload(4, 2);
  last.commit.ends_as = ChainState::kSucceeded;
  uploader_.Offer(lease_, &last);
  executor_.RunUntilIdle();
  EXPECT_EQ(chain().state, ChainState::kSucceeded);
  EXPECT_TRUE(held_.quiet());
}

TEST_F(DrawUploaderTest, ReleasesOnlyAfterQueuedUploadsAreCommitted) {
  Offer(2, 2);
  Offer(4, 2);
  uploader_.ReleaseAfter(lease_, ReleasedChain::Why::kStopped, "drain");
  EXPECT_TRUE(held_.Holds(lease_));
  executor_.RunUntilIdle();
  EXPECT_EQ(chain().progress.num_draws, 4);
  EXPECT_FALSE(held_.Holds(lease_));
  EXPECT_THAT(held_.MakeReport().released, SizeIs(1));
}

TEST_F(DrawUploaderTest, OneChainInTroubleDoesNotHoldUpAnother) {
  const LeaseRef other{{"job-a", 1}, 1};
  OpenChain(other);
  server_.put_failures.assign(1, absl::UnavailableError("down"));
  Offer(2, 2);
  executor_.RunUntilIdle();
  ProgressUpload upload = Upload(2, 2);
  uploader_.Offer(other, &upload);
  executor_.RunUntilIdle();
  EXPECT_EQ(server_.chains[other.chain].progress.num_draws, 2);
  EXPECT_EQ(chain().progress.num_draws, 0);
}

}  // namespace
}  // namespace chainfleet
