#include "server/control/draw_verifier.h"

#include "core/store/draw_codec/sha256.h"
#include "tests/server/control/dispatcher_fixture.h"
#include "tests/support/memory_blob_store.h"

namespace chainfleet {
namespace {

class DrawVerifierTest : public DispatcherTest {
 protected:
  // Commits `count` segments of 10 bytes, all of them marked corrupt; the objects are not there.
  void CommitMarked(int count) {
    for (int i = 0; i < count; ++i) {
      ProgressCommit commit = worker_.NextCommit(chain_);
      BlobRef& object = commit.segment->object;
      object.sha256 = Sha256Hex(BytesOf(i));
      objects_.push_back(object.name);
      ASSERT_TRUE(Commit(worker_, commit).ok());
      worker_.Took(commit);
      ASSERT_TRUE(Wait<bool>([&](auto done) { versions_->MarkCorrupt(chain_.job, object.name, done); }).ok());
    }
    ASSERT_EQ(*store_->CountCorrupt(), count);
  }
  static std::string BytesOf(int i) { return "bytes of " + std::to_string(i); }
  void Restore(int i) { ASSERT_TRUE(blobs_.Replace(objects_.at(static_cast<size_t>(i)), BytesOf(i)).ok()); }
  bool IsMarked(int i) { return store_->FindSegment(chain_.job, objects_.at(static_cast<size_t>(i)))->corrupt; }
  int64_t Verify(int64_t budget_bytes = 1000) { return verifier_.Verify(budget_bytes).value(); }

  FakeWorker worker_{"w1"};
  const ChainId chain_ = LeaseOne(&worker_);
  std::vector<std::string> objects_;
  MemoryBlobStore blobs_;
  DrawVerifier verifier_{&executor_, store_.get(), writer_, &blobs_};
};

TEST_F(DrawVerifierTest, TakesTheMarkFromADrawThatIsRightAgain) {
  CommitMarked(2);
  Restore(1);
  EXPECT_EQ(Verify(), 1);
  EXPECT_TRUE(IsMarked(0)) << "missing";
  EXPECT_FALSE(IsMarked(1));
  Restore(0);
  EXPECT_EQ(Verify(), 1);
  EXPECT_EQ(*store_->CountCorrupt(), 0);
  EXPECT_EQ(Verify(), 0);
}

TEST_F(DrawVerifierTest, KeepsTheMarkOfOtherBytes) {
  CommitMarked(3);
  ASSERT_TRUE(blobs_.Put(objects_[0], "bytes of 9").ok());
  ASSERT_TRUE(blobs_.Put(objects_[1], "bytes").ok());
  ASSERT_TRUE(blobs_.Put(objects_[2], "bytes of 2 and more").ok());
  EXPECT_EQ(Verify(), 0);
  EXPECT_EQ(*store_->CountCorrupt(), 3);
}

TEST_F(DrawVerifierTest, ContinuesWhereItsBudgetEndedAndStartsOver) {
  CommitMarked(5);
  Restore(4);
  EXPECT_EQ(Verify(20), 0);
  EXPECT_EQ(Verify(20), 0);
  EXPECT_EQ(Verify(20), 1) << "the fifth";
  Restore(0);
  EXPECT_EQ(Verify(20), 1) << "from the first again";
}

TEST_F(DrawVerifierTest, RunsAtItsStartAndThenEachInterval) {
  CommitMarked(2);
  Restore(0);
  verifier_.Start(absl::Minutes(5));
  executor_.RunUntilIdle();
  EXPECT_FALSE(IsMarked(0));
  Restore(1);
  executor_.RunFor(absl::Minutes(4));
  EXPECT_TRUE(IsMarked(1));
  executor_.RunFor(absl::Minutes(2));
  EXPECT_FALSE(IsMarked(1));
}

}  // namespace
}  // namespace chainfleet
