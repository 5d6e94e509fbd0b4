#include "server/control/garbage_collector.h"

#include "core/store/draw_codec/object_names.h"
#include "tests/server/control/dispatcher_fixture.h"
#include "tests/support/forwarding_blobs.h"
#include "tests/support/recording_store.h"

namespace chainfleet {
namespace {

using testing::Contains;
using testing::Not;

// Objects in memory, one of which cannot be deleted.
class StubbornBlobs final : public ForwardingBlobs {
 public:
  std::string stubborn;
  void Add(const std::string& name) { ASSERT_TRUE(blobs.Put(name, "bytes").ok()); }
  absl::Status Delete(const std::string& name) override {
    return name == stubborn ? absl::InternalError("input/output error") : blobs.Delete(name);
  }
};

class GarbageCollectorTest : public DispatcherTest {
 protected:
  // An upload under `epoch`, committed or not.
  std::string PutResume(const ChainId& chain, int64_t epoch, int64_t n) {
    const std::string name = ResumeObjectName("incarnation-1", chain, epoch, DigestOf(n));
    blobs_.Add(name);
    return name;
  }

  ProgressCommit CommitWithObjects(const FakeWorker& worker, const ChainId& chain) {
    ProgressCommit commit = worker.NextCommit(chain);
    const int64_t step = commit.resume_point.step;
    commit.resume_point.inline_bytes.clear();
    commit.resume_point.sha256 = DigestOf(step);
    commit.resume_point.object = BlobRef{PutResume(chain, commit.lease_epoch, step), 5, DigestOf(step)};
    blobs_.Add(commit.segment->object.name);
    return commit;
  }
  std::vector<std::string> Objects() { return blobs_.List("").value(); }
  void Collect() {
    const auto pass = collector_.Collect();
    ASSERT_TRUE(pass.ok()) << pass.status();
  }
  StubbornBlobs blobs_;
  GarbageCollector collector_{&executor_, store_.get(), writer_, &blobs_};
};

TEST_F(GarbageCollectorTest, KeepsWhatIsReferencedAndDeletesSupersededResumePoints) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit first = CommitWithObjects(worker, chain);
  ASSERT_TRUE(Commit(worker, first).ok());
  worker.Took(first);
  const ProgressCommit second = CommitWithObjects(worker, chain);
  ASSERT_TRUE(Commit(worker, second).ok());
  Collect();
  EXPECT_THAT(Objects(), testing::UnorderedElementsAre(first.segment->object.name, second.segment->object.name,
                                                       second.resume_point.object->name));
}

TEST_F(GarbageCollectorTest, DeletesNothingWhileABackupHoldsIt) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit first = CommitWithObjects(worker, chain);
  ASSERT_TRUE(Commit(worker, first).ok());
  worker.Took(first);
  std::shared_ptr<void> hold = collector_.Hold(), other = collector_.Hold();
  ASSERT_TRUE(Commit(worker, CommitWithObjects(worker, chain)).ok());  // supersedes the resume point
  const std::string swept = PutResume({"job-gone", 0}, 1, 99);
  ASSERT_TRUE(store_->Apply(std::vector<StateChange>{change::QueueSweep{{"job-gone", 0}}}, absl::UnixEpoch()).ok());
  const std::string superseded = first.resume_point.object->name;
  Collect();
  EXPECT_THAT(Objects(), testing::AllOf(Contains(superseded), Contains(swept)));
  hold = nullptr;
  Collect();
  EXPECT_THAT(Objects(), Contains(superseded)) << "the other backup still runs";
  other = nullptr;
  Collect();
  EXPECT_THAT(Objects(), testing::AllOf(Not(Contains(superseded)), Not(Contains(swept))));
}

TEST_F(GarbageCollectorTest, KeepsUploadsOfTheCurrentEpochUntilItPasses) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const std::string uploaded = PutResume(chain, 1, 99);
  Collect();
  EXPECT_THAT(Objects(), Contains(uploaded)) << "its commit may be on the way";
  worker.Restart();
  Sync(&worker);
  ASSERT_EQ(worker.chains.at(chain).epoch, 2);
  Collect();
  EXPECT_THAT(Objects(), Not(Contains(uploaded)));
}

TEST_F(GarbageCollectorTest, FinalChainKeepsOnlyWhatItCommitted) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const std::string orphan = PutResume(chain, 1, 99);
  ProgressCommit last = CommitWithObjects(worker, chain);
  last.ends_as = ChainState::kSucceeded;
  ASSERT_TRUE(Commit(worker, last).ok());
  Collect();
  EXPECT_THAT(Objects(), Not(Contains(orphan)));
  EXPECT_THAT(Objects(), Contains(last.segment->object.name));
}

TEST_F(GarbageCollectorTest, DeletedJobLosesItsObjectsAfterTheLongestPrediction) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const ProgressCommit commit = CommitWithObjects(worker, chain);
  ASSERT_TRUE(Commit(worker, commit).ok());
  ASSERT_TRUE(SetIntent("job", JobIntent::kDelete).ok());
  Collect();
  EXPECT_THAT(Objects(), Contains(commit.segment->object.name)) << "a prediction may be reading it";
  executor_.RunFor(limits::kPredictDeadline + absl::Seconds(1));
  Collect();
  EXPECT_TRUE(Objects().empty());
}

TEST_F(GarbageCollectorTest, LeavesDatasetsAndStrangeFilesAlone) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const std::string dataset = DatasetObjectName("incarnation-1", DigestOf(1), 7);
  const std::string strange = ChainObjectPrefix("incarnation-1", chain) + "notes.txt";
  blobs_.Add(dataset);
  blobs_.Add(strange);
  ASSERT_TRUE(SetIntent("job", JobIntent::kCancel).ok());
  Collect();
  EXPECT_EQ(Objects().size(), 2u);
}

TEST_F(GarbageCollectorTest, RunsOnItsOwnOnceStarted) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const std::string orphan = PutResume(chain, 1, 99);
  ASSERT_TRUE(SetIntent("job", JobIntent::kCancel).ok());
  collector_.Start(absl::Minutes(5));
  executor_.RunFor(absl::Seconds(15));
  EXPECT_THAT(Objects(), Not(Contains(orphan))) << "a server that restarts every few minutes must collect, too";
  const std::string later = PutResume({chain.job, 7}, 1, 100);
  ASSERT_TRUE(store_->Apply(std::vector<StateChange>{change::QueueSweep{{chain.job, 7}}}, absl::UnixEpoch()).ok());
  executor_.RunFor(absl::Minutes(4));
  EXPECT_THAT(Objects(), Contains(later));
  executor_.RunFor(absl::Minutes(2));
  EXPECT_THAT(Objects(), Not(Contains(later)));
}

TEST_F(GarbageCollectorTest, LooksOnlyThroughChainsWithSomethingToCollect) {
  FakeWorker worker("w1", 100);
  const std::string job = Create("job", 100);
  Sync(&worker);
  Sync(&worker);
  ASSERT_EQ(worker.chains.size(), 100u);
  EXPECT_EQ(collector_.Collect()->chains, 0);
  const ProgressCommit commit = CommitWithObjects(worker, {job, 5});
  ASSERT_TRUE(Commit(worker, commit).ok());
  EXPECT_EQ(collector_.Collect()->chains, 0) << "a commit leaves nothing unnamed";
  GiveBack(&worker, {job, 7}, ReleasedChain::Why::kRefused);
  Sync(&worker);
  executor_.RunFor(limits::kMaxAttemptDelay);
  Sync(&worker);
  ASSERT_GT(worker.chains.at({job, 7}).epoch, 1);
  EXPECT_EQ(collector_.Collect()->chains, 1);
  EXPECT_EQ(collector_.Collect()->chains, 0);
  ASSERT_TRUE(SetIntent("job", JobIntent::kCancel).ok());
  EXPECT_EQ(collector_.Collect()->chains, 100);
  EXPECT_EQ(collector_.Collect()->chains, 0);
}

TEST_F(GarbageCollectorTest, AnObjectThatCannotBeDeletedHoldsNothingElseUp) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  std::vector<ProgressCommit> commits;
  for (int i = 0; i < 3; ++i) {
    commits.push_back(CommitWithObjects(worker, chain));
    ASSERT_TRUE(Commit(worker, commits.back()).ok());
    worker.Took(commits.back());
  }
  const std::string orphan = PutResume(chain, 1, 99);
  ASSERT_TRUE(SetIntent("job", JobIntent::kCancel).ok());
  blobs_.stubborn = commits[0].resume_point.object->name;
  EXPECT_EQ(collector_.Collect().status().message(), "input/output error");
  EXPECT_THAT(Objects(), Not(Contains(commits[1].resume_point.object->name)));
  EXPECT_THAT(Objects(), Contains(blobs_.stubborn));
  blobs_.stubborn = "";
  Collect();
  EXPECT_EQ(Objects().size(), 4u) << "three segments and the resume point";
  EXPECT_THAT(Objects(), Not(Contains(orphan)));
}

TEST_F(GarbageCollectorTest, ShardsOfAnUploadThatDiedWithItsProcessGo) {
  const std::string shard = DatasetObjectName("incarnation-1", DigestOf(1), 7);
  ASSERT_TRUE(Wait<std::string>([&](auto done) { catalog_->BeginUpload({shard}, done); }).ok());
  blobs_.Add(shard);
  Collect();
  EXPECT_THAT(Objects(), Contains(shard)) << "the upload may go on";
  GarbageCollector next(&executor_, store_.get(), writer_, &blobs_);
  ASSERT_TRUE(next.Recover().ok());
  ASSERT_TRUE(next.Collect().ok());
  EXPECT_TRUE(Objects().empty());
}

TEST_F(GarbageCollectorTest, ObjectsThatAFullDiskKeptFromTheirRegistrationGo) {
  RecordingStore disk(database_.Open());
  StartOn(&disk);
  const auto begin = [&](const std::string& object) {
    blobs_.Add(object);
    return Wait<std::string>([&](auto done) { catalog_->BeginUpload({object}, done); }).value();
  };
  Dataset dataset;
  dataset.name = "digits";
  dataset.digest = DigestOf(1);
  dataset.shards.push_back({0, 5, {DatasetObjectName("incarnation-1", DigestOf(1), 7), 5, DigestOf(2)}});
  const StoredModel model = {"net", {DatasetObjectName("incarnation-1", DigestOf(3), 8), 5, DigestOf(3)}, {}};
  const std::string of_dataset = begin(dataset.shards[0].object.name), of_model = begin(model.object.name);
  disk.SetFull(true);
  const auto no_dataset = Wait<Dataset>([&](auto done) { catalog_->Put(dataset, of_dataset, done); });
  EXPECT_EQ(ReasonOf(no_dataset.status()), "DISK_FULL");
  const auto no_model = Wait<StoredModel>([&](auto done) { catalog_->Put(model, of_model, done); });
  EXPECT_EQ(ReasonOf(no_model.status()), "DISK_FULL");
  GarbageCollector collector(&executor_, &disk, writer_, &blobs_);
  ASSERT_TRUE(collector.Collect().ok());
  EXPECT_EQ(Objects().size(), 2u);
  disk.SetFull(false);
  executor_.RunFor(2 * limits::kRetryMax);
  ASSERT_TRUE(collector.Collect().ok());
  EXPECT_TRUE(Objects().empty());
}

}  // namespace
}  // namespace chainfleet
