#include "server/control/restored_store.h"

#include "core/store/blob_store/memory_blob_store.h"
#include "core/store/draw_codec/object_names.h"
#include "server/control/chain_objects.h"
#include "server/control/garbage_collector.h"
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RestoredStoreTest : public DispatcherTest {
 protected:
  ProgressCommit CommitWithObjects(const FakeWorker& worker, const ChainId& chain) {
    ProgressCommit commit = worker.NextCommit(chain);
    const int64_t step = commit.resume_point.step;
    const std::string incarnation = store_->incarnation();
    commit.resume_point.inline_bytes.clear();
    commit.resume_point.sha256 = DigestOf(step);
    commit.resume_point.object =
        BlobRef{ResumeObjectName(incarnation, chain, commit.lease_epoch, DigestOf(step)), 5, DigestOf(step)};
    EXPECT_TRUE(blobs_.Put(commit.resume_point.object->name, "point").ok());
    EXPECT_TRUE(blobs_.Put(commit.segment->object.name, "draws").ok());
    return commit;
  }
  ProgressCommit Draw(FakeWorker* worker, const ChainId& chain) {
    const ProgressCommit commit = CommitWithObjects(*worker, chain);
    EXPECT_TRUE(Commit(*worker, commit).ok());
    worker->Took(commit);
    return commit;
  }
  // As a server that was started with --restored.
  RestoredStore Restore() {
    dispatcher_.reset();
    store_ = std::make_unique<MemoryStateStore>(database_, "incarnation-2");
    const absl::StatusOr<RestoredStore> stock = TakeStock(clock_, store_.get(), blobs_);
    EXPECT_TRUE(stock.ok()) << stock.status();
    StartOn(store_.get());
    return stock.value_or(RestoredStore());
  }
  SegmentRecord Segment(const ChainId& chain, size_t n) {
    return store_->ListSegments({.job = chain.job, .chain = chain.index}).value().at(n);
  }

  MemoryBlobStore blobs_;
};

TEST_F(RestoredStoreTest, AWorkerOfBeforeDropsItsChainsAndAnotherGoesOn) {
  FakeWorker old("w1"), next("w2");
  const ChainId chain = LeaseOne(&old);
  Draw(&old, chain);
  old.store_incarnation = store_->incarnation();
  const int64_t generation = store_->generation();
  const RestoredStore stock = Restore();
  EXPECT_EQ(stock.objects, 2);
  EXPECT_EQ(stock.missing, 0);
  EXPECT_EQ(Chain(chain).state, ChainState::kPending);
  EXPECT_EQ(Chain(chain).attempts, 0);
  EXPECT_GT(store_->generation(), generation + kRestoredLeap);
  EXPECT_EQ(ReasonOf(Commit(old, old.NextCommit(chain)).status()), "LEASE_FENCED");
  const BlobRef late{SegmentObjectName("incarnation-1", chain, 1, DigestOf(20)), 5, DigestOf(20)};
  EXPECT_EQ(ReasonOf(ChainObjects(store_.get(), &blobs_, dispatcher_.get()).Admit(chain, 1, late)), "LEASE_FENCED");
  const SynchronizeReply reply = Sync(&old);
  EXPECT_EQ(reply.store_incarnation, "incarnation-2");
  EXPECT_THAT(old.stops, ElementsAre(testing::Pair(chain, StopOrder::How::kFenced)));
  old.draining = true;
  Sync(&old);
  Sync(&next);
  ASSERT_TRUE(next.chains.contains(chain));
  EXPECT_EQ(next.chains.at(chain).epoch, kRestoredLeap + 2);
  EXPECT_EQ(next.chains.at(chain).progress.step, 10);
  Draw(&next, chain);
  EXPECT_EQ(Chain(chain).num_draws, 2);
}

TEST_F(RestoredStoreTest, ChainGoesOnWithoutTheObjectsOfItsTombstones) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit first = Draw(&worker, chain);
  Draw(&worker, chain);
  const std::vector<StateChange> expiry{change::ExpireSegments{chain, {0}}};
  ASSERT_EQ(store_->Apply(expiry, clock_.Wall())->at(0).objects.size(), 1u);
  ASSERT_TRUE(blobs_.Delete(first.segment->object.name).ok());
  const RestoredStore stock = Restore();
  EXPECT_EQ(stock.missing, 1);
  EXPECT_EQ(stock.corrupt_segments, 0);
  EXPECT_EQ(stock.failed_chains, 0);
  EXPECT_EQ(Chain(chain).state, ChainState::kPending);
}

TEST_F(RestoredStoreTest, DrawsWithoutTheirObjectAreMarkedCorrupt) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit first = Draw(&worker, chain);
  Draw(&worker, chain);
  ASSERT_TRUE(blobs_.Delete(first.segment->object.name).ok());
  const RestoredStore stock = Restore();
  EXPECT_EQ(stock.missing, 1);
  EXPECT_EQ(stock.corrupt_segments, 1);
  EXPECT_EQ(stock.failed_chains, 0);
  EXPECT_TRUE(Segment(chain, 0).corrupt);
  EXPECT_FALSE(Segment(chain, 1).corrupt);
  EXPECT_EQ(Chain(chain).state, ChainState::kPending) << "it goes on";
}

TEST_F(RestoredStoreTest, AChainWithoutItsResumePointFails) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit commit = Draw(&worker, chain);
  ASSERT_TRUE(blobs_.Delete(commit.resume_point.object->name).ok());
  const RestoredStore stock = Restore();
  EXPECT_EQ(stock.failed_chains, 1);
  EXPECT_EQ(stock.corrupt_segments, 0);
  EXPECT_EQ(Chain(chain).state, ChainState::kFailed);
  EXPECT_THAT(Chain(chain).reason, HasSubstr(commit.resume_point.object->name));
}

TEST_F(RestoredStoreTest, AFinishedChainNeedsItsDrawsAlone) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ProgressCommit commit = CommitWithObjects(worker, chain);
  commit.ends_as = ChainState::kSucceeded;
  ASSERT_TRUE(Commit(worker, commit).ok());
  ASSERT_TRUE(blobs_.Delete(commit.resume_point.object->name).ok());
  EXPECT_EQ(Restore().failed_chains, 0);
  EXPECT_EQ(Chain(chain).state, ChainState::kSucceeded);
}

TEST_F(RestoredStoreTest, AnAbortedJobHasEnded) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Draw(&worker, chain);
  ASSERT_TRUE(SetIntent(chain.job, JobIntent::kFinish).ok());
  ASSERT_EQ(Chain(chain).state, ChainState::kLeased);
  Restore();
  EXPECT_EQ(dispatcher_->GetJob(chain.job)->state, JobState::kSucceededEarly);
}

TEST_F(RestoredStoreTest, WhatWasPutAfterTheBackupIsGarbageUnderItsOldName) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit kept = Draw(&worker, chain);
  const std::string later = SegmentObjectName("incarnation-1", chain, 5, DigestOf(99));
  ASSERT_TRUE(blobs_.Put(later, "draws of a path that is no more").ok());
  Restore();
  GarbageCollector collector(&clock_, &executor_, store_.get(), &blobs_);
  ASSERT_TRUE(collector.Collect().ok());
  EXPECT_THAT(blobs_.List("").value(),
              testing::UnorderedElementsAre(kept.segment->object.name, kept.resume_point.object->name));
}

TEST_F(RestoredStoreTest, ContentThatIsMissingIsTold) {
  Dataset dataset;
  dataset.name = "digits";
  dataset.digest = DigestOf(1);
  dataset.shards = {{0, 5, {"incarnation-1/datasets/" + DigestOf(2), 10, DigestOf(2)}}};
  const std::string upload =
      Wait<std::string>([&](auto done) { dispatcher_->BeginUpload({dataset.shards[0].object.name}, done); }).value();
  ASSERT_TRUE(Wait<Dataset>([&](auto done) { dispatcher_->PutDataset(dataset, upload, done); }).ok());
  const RestoredStore stock = Restore();
  EXPECT_EQ(stock.objects, 1);
  EXPECT_EQ(stock.missing, 1);
}

}  // namespace
}  // namespace chainfleet
