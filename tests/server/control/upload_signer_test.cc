// Tests objects that workers put directly.
#include "server/control/upload_signer.h"

#include "core/store/draw_codec/object_names.h"
#include "tests/server/control/dispatcher_fixture.h"
#include "tests/support/memory_blob_store.h"

namespace chainfleet {
namespace {

class UploadSignerTest : public DispatcherTest {
 protected:
  BlobRef RefOf(const ChainId& chain, int64_t epoch) {
    return {SegmentObjectName(store_->incarnation(), chain, epoch, DigestOf(7)), 5, DigestOf(8)};
  }
  size_t sweeps() { return store_->ListSweeps(0, 10)->size(); }

  MemoryBlobStore blobs_;
  UploadSigner signer_{[](const BlobRef& ref, absl::Duration valid_for) -> absl::StatusOr<SignedUpload> {
                         EXPECT_EQ(valid_for, limits::kSignedUploadTerm);
                         return SignedUpload{"http://s3/" + ref.name, {}};
                       },
                       ChainObjects(store_.get(), &blobs_, writer_, *dispatcher_),
                       store_.get(),
                       writer_,
                       &clock_,
                       &executor_};
};

TEST_F(UploadSignerTest, SignsForTheLeaseOfTheNameAlone) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  EXPECT_EQ(signer_.SignUpload(chain, 1, RefOf(chain, 1))->url, "http://s3/" + RefOf(chain, 1).name);
  EXPECT_TRUE(absl::IsInvalidArgument(signer_.SignUpload(chain, 1, RefOf({chain.job, 1}, 1)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(signer_.SignUpload(chain, 1, RefOf(chain, 2)).status()));
  EXPECT_EQ(ReasonOf(signer_.SignUpload(chain, 2, RefOf(chain, 2)).status()), "LEASE_FENCED");
}

TEST_F(UploadSignerTest, SweepsAChainOnceLateUploadsCanNoLongerArrive) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ASSERT_TRUE(signer_.SignUpload(chain, 1, RefOf(chain, 1)).ok());
  executor_.RunFor(absl::Seconds(30));
  ASSERT_TRUE(SetIntent(chain.job, JobIntent::kCancel).ok());
  ASSERT_EQ(sweeps(), 1u);
  const std::vector<StateChange> swept{change::EndSweep{store_->ListSweeps(0, 10)->at(0).ticket}};
  ASSERT_TRUE(store_->Apply(swept, absl::UnixEpoch()).ok());
  executor_.RunFor(absl::Seconds(30));
  EXPECT_EQ(sweeps(), 0u) << "it may still be on the way";
  executor_.RunFor(limits::UploadTimeout(5));
  EXPECT_EQ(sweeps(), 1u);
}

TEST_F(UploadSignerTest, WatchesAChainOnceForManySignatures) {
  FakeWorker worker("w1", 1);
  const ChainId chain = LeaseOne(&worker);
  const size_t before = executor_.num_tasks();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(signer_.SignUpload(chain, 1, RefOf(chain, 1)).ok());
  EXPECT_LE(executor_.num_tasks(), before + 2);
  for (int i = 0; i < 30; ++i) {
    Sync(&worker);
    executor_.RunFor(limits::kSyncInterval);
  }
  EXPECT_EQ(sweeps(), 0u) << "the lease is current: nothing is left behind";
}

}  // namespace
}  // namespace chainfleet
