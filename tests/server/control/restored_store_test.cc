#include "server/control/restored_store.h"

#include <set>

#include "core/store/draw_codec/object_names.h"
#include "server/control/chain_objects.h"
#include "server/control/garbage_collector.h"
#include "tests/server/control/dispatcher_fixture.h"
#include "tests/support/forwarding_blobs.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Objects in memory; each page of a listing has one object.
class ListedOneByOne final : public ForwardingBlobs {
 public:
  std::string unlisted;                    // exists, but is in no page
  mutable int questions = 0;               // calls other than pages
  mutable std::set<std::string> prefixes;  // prefixes of listings by pages

  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override {
    ++questions;
    return blobs.SizeBytes(name);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const override {
    ++questions;
    return blobs.List(prefix);
  }
  absl::Status ListPages(const std::string& prefix, const PageVisitor& visit) const override {
    prefixes.insert(prefix);
    const std::vector<std::string> names = blobs.List(prefix).value();
    for (const std::string& name : names) {
      if (name != unlisted) CHAINFLEET_RETURN_IF_ERROR(visit({name}));
    }
    return absl::OkStatus();
  }
};

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
  // Opens the store as a server that was started with --restored.
  RestoredStore Restore() {
    coordinator_.reset();
    store_ = database_.OpenRestored("incarnation-" + std::to_string(++incarnations_));
    blobs_.questions = 0;
    blobs_.prefixes.clear();
    StateWriter writer(&clock_, &executor_, store_.get(), nullptr);
    const absl::StatusOr<RestoredStore> stock = TakeStock(store_.get(), &writer, blobs_);
    EXPECT_TRUE(stock.ok()) << stock.status();
    StartOn(store_.get());
    return stock.value_or(RestoredStore());
  }
  SegmentRecord Segment(const ChainId& chain, size_t n) {
    return store_->ListSegments({.job = chain.job, .chain = chain.index}).value().at(n);
  }

  std::vector<ChainId> Queued() {
    std::vector<ChainId> chains;
    const std::vector<ChainSweep> sweeps = store_->ListSweeps(0, 10).value();
    for (const ChainSweep& sweep : sweeps) chains.push_back(sweep.chain);
    return chains;
  }
  std::string PutLater(const std::string& name) {
    EXPECT_TRUE(blobs_.Put(name, "after the backup").ok());
    return name;
  }
  void Collect() {
    GarbageCollector collector(&executor_, store_.get(), writer_, &blobs_);
    ASSERT_TRUE(collector.Recover().ok());
    ASSERT_TRUE(collector.Collect().ok());
  }
  // Puts a data set, with or without its shards.
  Dataset PutDataset(const std::string& name, const std::vector<std::string>& objects) {
    Dataset dataset;
    dataset.name = name;
    dataset.digest = DigestOf(1);
    for (const std::string& object : objects) dataset.shards.push_back({0, 5, {object, 10, DigestOf(2)}});
    const std::string upload = Wait<std::string>([&](auto done) { catalog_->BeginUpload(objects, done); }).value();
    EXPECT_TRUE(Wait<Dataset>([&](auto done) { catalog_->Put(dataset, upload, done); }).ok());
    return dataset;
  }

  ListedOneByOne blobs_;
  int incarnations_ = 1;
};

TEST_F(RestoredStoreTest, AWorkerOfTheFormerStoreDropsItsChainsAndAnotherContinues) {
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
  EXPECT_EQ(ReasonOf(ChainObjects(store_.get(), &blobs_, writer_, *dispatcher_).Admit(chain, 1, late)), "LEASE_FENCED");
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

TEST_F(RestoredStoreTest, ChainContinuesWithoutTheObjectsOfItsTombstones) {
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

TEST_F(RestoredStoreTest, AListingAloneFailsNoChain) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  blobs_.unlisted = Draw(&worker, chain).resume_point.object->name;
  const RestoredStore stock = Restore();
  EXPECT_EQ(stock.missing, 1);
  EXPECT_EQ(stock.failed_chains, 0);
  EXPECT_EQ(Chain(chain).state, ChainState::kPending);
}

TEST_F(RestoredStoreTest, ObjectsPutAfterTheBackupAreGarbageUnderTheirOldNames) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit kept = Draw(&worker, chain);
  const std::string later = PutLater(SegmentObjectName("incarnation-1", chain, 5, DigestOf(99)));
  EXPECT_EQ(Restore().swept_chains, 1);
  EXPECT_THAT(Queued(), ElementsAre(chain));
  EXPECT_THAT(blobs_.List("").value(), testing::Contains(later)) << "the collector deletes, if it is started";
  Collect();
  EXPECT_THAT(blobs_.List("").value(), UnorderedElementsAre(kept.segment->object.name, kept.resume_point.object->name));
}

TEST_F(RestoredStoreTest, ChainsThatTheBackupDoesNotKnowAreGarbage) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker), added{chain.job, 7}, unknown{"later-abcdef", 0};
  const ProgressCommit kept = Draw(&worker, chain);
  PutLater(SegmentObjectName("incarnation-1", unknown, 1, DigestOf(90)));
  PutLater(ResumeObjectName("incarnation-1", unknown, 2, DigestOf(91)));
  PutLater(ResumeObjectName("incarnation-1", added, 1, DigestOf(92)));
  const std::string foreign = PutLater("incarnation-1/notes/of-somebody");
  const std::string stranger = PutLater(ResumeObjectName("other-store", unknown, 1, DigestOf(93)));
  const RestoredStore stock = Restore();
  EXPECT_EQ(stock.swept_chains, 2);
  EXPECT_THAT(Queued(), UnorderedElementsAre(unknown, added)) << "and none that has no more than it should";
  EXPECT_EQ(blobs_.List("")->size(), 7u);
  Collect();
  EXPECT_THAT(blobs_.List("").value(),
              UnorderedElementsAre(kept.segment->object.name, kept.resume_point.object->name, foreign, stranger));
}

TEST_F(RestoredStoreTest, DataSetsAndModelsThatTheBackupDoesNotKnowAreGarbage) {
  const std::string kept = PutLater(DatasetObjectName("incarnation-1", DigestOf(1), 1));
  PutDataset("digits", {kept});
  const std::string begun = PutLater(DatasetObjectName("incarnation-1", DigestOf(2), 2));
  ASSERT_TRUE(Wait<std::string>([&](auto done) { catalog_->BeginUpload({begun}, done); }).ok());
  PutLater(DatasetObjectName("incarnation-1", DigestOf(3), 3));
  PutLater("incarnation-1/datasets/" + DigestOf(4));  // as older versions named them
  PutLater(ModelObjectName("incarnation-1", DigestOf(5), 4));
  const RestoredStore stock = Restore();
  EXPECT_EQ(stock.garbage, 4);
  EXPECT_EQ(stock.missing, 0);
  EXPECT_EQ(blobs_.List("")->size(), 5u);
  Collect();
  EXPECT_THAT(blobs_.List("").value(), ElementsAre(kept));
}

TEST_F(RestoredStoreTest, ChainsThatHaveWhatTheyShouldCostOneListingOfEachIncarnation) {
  FakeWorker worker("w1");
  Create("three", 3);
  Sync(&worker);
  ASSERT_EQ(worker.chains.size(), 3u);
  std::vector<ChainId> chains;
  for (const auto& [chain, held] : worker.chains) chains.push_back(chain);
  for (const ChainId& chain : chains) Draw(&worker, chain);
  Restore();
  EXPECT_THAT(blobs_.prefixes, ElementsAre("incarnation-1/"));
  const RestoredStore again = Restore();
  EXPECT_THAT(blobs_.prefixes, ElementsAre("incarnation-1/", "incarnation-2/"));
  EXPECT_EQ(blobs_.questions, 0);
  EXPECT_EQ(again.objects, 6);
  EXPECT_EQ(again.missing, 0);
  EXPECT_THAT(Queued(), IsEmpty());
}

TEST_F(RestoredStoreTest, ObjectsAreFoundUnderTheIncarnationThatWroteThem) {
  FakeWorker worker("w1"), next("w2");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit first = Draw(&worker, chain);
  Restore();
  Sync(&next);
  ASSERT_TRUE(next.chains.contains(chain));
  const ProgressCommit second = Draw(&next, chain);
  ASSERT_TRUE(blobs_.Delete(first.segment->object.name).ok());
  ASSERT_TRUE(blobs_.Delete(second.resume_point.object->name).ok());
  Collect();
  const RestoredStore stock = Restore();
  EXPECT_EQ(stock.objects, 3);
  EXPECT_EQ(stock.missing, 2);
  EXPECT_EQ(stock.corrupt_segments, 1);
  EXPECT_EQ(stock.failed_chains, 1);
}

TEST_F(RestoredStoreTest, MissingContentIsReported) {
  PutDataset("digits", {DatasetObjectName("incarnation-1", DigestOf(2), 1)});
  const RestoredStore stock = Restore();
  EXPECT_EQ(stock.objects, 1);
  EXPECT_EQ(stock.missing, 1);
  EXPECT_EQ(stock.garbage, 0);
}

}  // namespace
}  // namespace chainfleet
