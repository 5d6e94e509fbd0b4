#include "server/control/garbage_collector.h"

#include <map>

#include "core/store/draw_codec/object_names.h"
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::Contains;
using testing::Not;

class MemoryBlobs final : public BlobStore {
 public:
  absl::Status Put(const std::string& name, const std::string& bytes) override {
    objects[name] = bytes;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Get(const std::string& name) const override { return objects.at(name); }
  absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const override {
    return objects.at(name).substr(static_cast<size_t>(offset), static_cast<size_t>(length));
  }
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override {
    return static_cast<int64_t>(objects.at(name).size());
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const override {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : objects) {
      if (name.starts_with(prefix)) names.push_back(name);
    }
    return names;
  }
  absl::Status Delete(const std::string& name) override {
    objects.erase(name);
    return absl::OkStatus();
  }
  std::map<std::string, std::string> objects;
};

class GarbageCollectorTest : public DispatcherTest {
 protected:
  // An upload under `epoch`, committed or not.
  std::string PutResume(const ChainId& chain, int64_t epoch, int64_t n) {
    const std::string name = ResumeObjectName("incarnation-1", chain, epoch, DigestOf(n));
    blobs_.objects[name] = "bytes";
    return name;
  }

  ProgressCommit CommitWithObjects(const FakeWorker& worker, const ChainId& chain) {
    ProgressCommit commit = worker.NextCommit(chain);
    const int64_t step = commit.resume_point.step;
    commit.resume_point.inline_bytes.clear();
    commit.resume_point.object = BlobRef{PutResume(chain, commit.lease_epoch, step), 5, DigestOf(step)};
    commit.segment->object.name = SegmentObjectName("incarnation-1", chain, commit.lease_epoch, DigestOf(step));
    blobs_.objects[commit.segment->object.name] = "bytes";
    return commit;
  }
  std::vector<std::string> Objects() { return blobs_.List("").value(); }
  void Collect() {
    const auto pass = collector_.Collect();
    ASSERT_TRUE(pass.ok()) << pass.status();
  }
  MemoryBlobs blobs_;
  GarbageCollector collector_{&clock_, &executor_, store_.get(), &blobs_};
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
  const std::string dataset = DatasetObjectName("incarnation-1", DigestOf(1));
  const std::string strange = ChainObjectPrefix("incarnation-1", chain) + "notes.txt";
  blobs_.objects[dataset] = blobs_.objects[strange] = "bytes";
  ASSERT_TRUE(SetIntent("job", JobIntent::kCancel).ok());
  Collect();
  EXPECT_EQ(Objects().size(), 2u);
}

TEST_F(GarbageCollectorTest, RunsOnItsOwnOnceStarted) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  const std::string orphan = PutResume(chain, 0, 99);
  collector_.Start(absl::Minutes(5));
  executor_.RunFor(absl::Minutes(4));
  EXPECT_THAT(Objects(), Contains(orphan));
  executor_.RunFor(absl::Minutes(2));
  EXPECT_THAT(Objects(), Not(Contains(orphan)));
}

}  // namespace
}  // namespace chainfleet
