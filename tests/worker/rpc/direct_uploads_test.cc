#include "worker/rpc/direct_uploads.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/manual_executor.h"
#include "tests/support/scripted_http.h"

namespace chainfleet {
namespace {

class DirectUploadsTest : public ::testing::Test {
 protected:
  DirectUploadsTest() { server_.chains[chain_].epoch = 1; }

  absl::Status Put() {
    absl::Status put = absl::UnknownError("no answer");
    uploads_.PutBlob(chain_, 1, ref_, std::make_shared<const std::string>("draws"),
                     [&put](const auto& result) { put = result.status(); });
    executor_.RunUntilIdle();
    return put;
  }

  const ChainId chain_{"job-a", 0};
  const BlobRef ref_{"store/job-a/0/segments/e1-abc", 5, "abc"};
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  FakeCoordinator server_{&executor_};
  ScriptedHttp s3_;
  absl::StatusOr<SignedUpload> signature_ =
      SignedUpload{"http://s3/bucket/object?X-Amz-Signature=secret", {{"if-none-match", "*"}}};
  int signatures_ = 0;
  DirectUploads uploads_{&server_,
                         [this](const ChainId&, int64_t, const BlobRef&, const Done<SignedUpload>& done) {
                           ++signatures_;
                           done(signature_);
                         },
                         &s3_, &executor_};
};

TEST_F(DirectUploadsTest, PutsTheBytesWhereTheServerSigned) {
  s3_.script = {HttpReply{200, {}, ""}};
  EXPECT_TRUE(Put().ok());
  ASSERT_EQ(s3_.asked.size(), 1u);
  EXPECT_EQ(s3_.asked[0].line, "PUT http://s3/bucket/object?X-Amz-Signature=secret");
  EXPECT_EQ(s3_.asked[0].headers.at("if-none-match"), "*");
  EXPECT_EQ(s3_.asked[0].body, "draws");
  EXPECT_TRUE(server_.blobs.empty()) << "nothing went through the server";
}

TEST_F(DirectUploadsTest, AnExistingObjectIsOk) {
  s3_.script = {S3Failure(412, "PreconditionFailed")};
  EXPECT_TRUE(Put().ok());
}

TEST_F(DirectUploadsTest, AnExpiredSignatureIsRenewed) {
  s3_.script = {S3Failure(403, "AccessDenied", "Request has expired"), HttpReply{200, {}, ""}};
  const absl::Status expired = Put();
  EXPECT_TRUE(absl::IsUnavailable(expired)) << expired;
  EXPECT_EQ(expired.message().find("secret"), absl::string_view::npos) << expired;
  EXPECT_TRUE(Put().ok());
  EXPECT_EQ(signatures_, 2);
}

TEST_F(DirectUploadsTest, TellsDamageAFullStoreAndAnOutageApart) {
  s3_.script = {S3Failure(400, "XAmzContentSHA256Mismatch"), S3Failure(507, "QuotaExceeded"),
                S3Failure(503, "SlowDown")};
  EXPECT_TRUE(absl::IsDataLoss(Put()));
  EXPECT_EQ(ReasonOf(Put()), "DISK_FULL");
  EXPECT_TRUE(absl::IsUnavailable(Put()));
  EXPECT_TRUE(absl::IsUnavailable(Put())) << "no answer";
}

TEST_F(DirectUploadsTest, WithoutSignaturesObjectsGoThroughTheServer) {
  signature_ = SignedUpload();
  EXPECT_TRUE(Put().ok());
  EXPECT_EQ(server_.blobs.at(ref_.name), "draws");
  EXPECT_TRUE(Put().ok());
  EXPECT_EQ(signatures_, 1) << "it is not asked for each object";
}

TEST_F(DirectUploadsTest, AnOlderServerTakesTheObjectsItself) {
  signature_ = absl::UnimplementedError("no such method");
  EXPECT_TRUE(Put().ok());
  EXPECT_EQ(server_.blobs.at(ref_.name), "draws");
}

TEST_F(DirectUploadsTest, ALostLeaseIsReported) {
  signature_ = WithReason(absl::FailedPreconditionError("not current"), "LEASE_FENCED");
  EXPECT_EQ(ReasonOf(Put()), "LEASE_FENCED");
  EXPECT_TRUE(s3_.asked.empty());
}

}  // namespace
}  // namespace chainfleet
