// Every StateStore accepts only the place that has its objects.
#include "core/store/state_store/object_home.h"

#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

class ObjectHomes : public StateStoreTest {
 protected:
  // The first opening decides where the objects are.
  void OpenFirst() {
    store_ = harness_->OpenAt(folder_).value();
    ASSERT_TRUE(Create("job-aaaaaa", 1).status.ok());
  }
  const ObjectHome folder_{"id-1", "/srv/a/blobs on host-a"}, bucket_{"s3://two/", "s3://two/"};
};

TEST_P(ObjectHomes, AnotherPlaceIsRefusedAndTakesNothingOver) {
  OpenFirst();
  store_ = harness_->OpenAt({folder_.id, "/srv/b/blobs on host-a"}).value();
  const absl::Status refused = harness_->OpenAt(bucket_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "OTHER_STORE");
  EXPECT_THAT(std::string(refused.message()), testing::AllOf(HasSubstr("/srv/b/blobs on host-a"),
                                                             HasSubstr("s3://two/"), HasSubstr("--objects-moved")));
  EXPECT_TRUE(Create("job-bbbbbb", 1).status.ok()) << "whoever has the store keeps it";
  EXPECT_TRUE(harness_->OpenAt({}).ok()) << "who reads no objects says nothing";
  EXPECT_TRUE(harness_->OpenAt(folder_).ok());
}

TEST_P(ObjectHomes, AWrongPlaceIsCorrectedWhileThereAreNoObjects) {
  ASSERT_TRUE(harness_->OpenAt({"s3://tow/", "s3://tow/"}).ok());
  store_ = harness_->OpenAt(bucket_).value();
  ASSERT_TRUE(Put(SmallDataset("digits")).status.ok());
  EXPECT_EQ(ReasonOf(harness_->OpenAt({"s3://tow/", "s3://tow/"}).status()), "OTHER_STORE");
  EXPECT_TRUE(harness_->OpenAt(bucket_).ok());
}

TEST_P(ObjectHomes, MovedObjectsKeepTheirNewPlace) {
  OpenFirst();
  ASSERT_TRUE(harness_->OpenAt({bucket_.id, bucket_.address, /*moved=*/true}).ok());
  EXPECT_TRUE(harness_->OpenAt(bucket_).ok());
  EXPECT_EQ(ReasonOf(harness_->OpenAt(folder_).status()), "OTHER_STORE");
}

TEST_P(ObjectHomes, ARestoredStoreKeepsItsPlace) {
  OpenFirst();
  ASSERT_NE(harness_->OpenRestored("incarnation-2"), nullptr);
  EXPECT_EQ(ReasonOf(harness_->OpenAt(bucket_).status()), "OTHER_STORE");
}

INSTANTIATE_TEST_SUITE_P(AllStores, ObjectHomes, testing::ValuesIn(StoreKinds()), StoreKindName);

}  // namespace
}  // namespace chainfleet
