// Tests the store with scripted replies of an S3 server that fails, refuses or lies.
#include "core/store/blob_store/s3_blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/spool_file.h"
#include "core/store/blob_store/s3_limits.h"
#include "tests/support/fake_clock.h"
#include "tests/support/scripted_http.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kSecret[] = "wJalrXUtnFEMI";

HttpReply Reply(int code, const std::string& body = "", std::map<std::string, std::string> headers = {}) {
  return {code, std::move(headers), body};
}

class S3BlobStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<S3Client> Client() {
    S3Settings settings{.bucket = "draws", .prefix = "fleet/", .endpoint = "http://store:8333", .region = "eu-1"};
    settings.credentials = FixedCredentials({"id", kSecret, "session"});
    return std::make_unique<S3Client>(settings, &http_, &clock_, RngKey{7},
                                      [this](absl::Duration wait) { waits_.push_back(wait); });
  }
  absl::StatusOr<std::unique_ptr<S3BlobStore>> Open(const S3BlobStore::Options& options = {}) {
    return S3BlobStore::Open(Client(), options);
  }
  // Returns an opened store and forgets the requests of its opening.
  std::unique_ptr<S3BlobStore> Opened(const S3BlobStore::Options& options = {}) {
    http_.script = {S3Failure(412, "PreconditionFailed")};
    auto store = Open(options).value();
    http_.asked.clear();
    return store;
  }
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const auto& asked : http_.asked) lines.push_back(asked.line);
    return lines;
  }

  ScriptedHttp http_;
  FakeClock clock_;
  std::vector<absl::Duration> waits_;
};

TEST_F(S3BlobStoreTest, RefusesAServerWithoutConditionalPuts) {
  http_.script = {Reply(200), Reply(200)};
  const absl::Status ignored = Open().status();
  EXPECT_EQ(ignored.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(ignored), "NO_CONDITIONAL_PUT");
  http_.script = {S3Failure(501, "NotImplemented")};
  EXPECT_EQ(ReasonOf(Open().status()), "NO_CONDITIONAL_PUT");
  http_.script = {Reply(200), S3Failure(412, "PreconditionFailed")};
  EXPECT_TRUE(Open().ok());
  EXPECT_EQ(http_.asked.back().line, "PUT http://store:8333/draws/fleet/.conditional-put");
  EXPECT_EQ(http_.asked.back().headers["if-none-match"], "*");
}

TEST_F(S3BlobStoreTest, SignsTheBytesItSends) {
  auto store = Opened();
  http_.script = {Reply(200)};
  ASSERT_TRUE(store->Put("a/b", "hello").ok());
  const ScriptedHttp::Asked& put = http_.asked.front();
  EXPECT_EQ(put.line, "PUT http://store:8333/draws/fleet/a/b");
  EXPECT_EQ(put.body, "hello");
  EXPECT_EQ(put.headers.at("x-amz-content-sha256"), "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  EXPECT_EQ(put.headers.at("x-amz-security-token"), "session");
  EXPECT_EQ(put.headers.at("x-amz-date"), S3Timestamp(clock_.Wall()));
  EXPECT_THAT(put.headers.at("Authorization"),
              AllOf(StartsWith("AWS4-HMAC-SHA256 Credential=id/"), HasSubstr("/eu-1/s3/aws4_request"),
                    HasSubstr("if-none-match"), Not(HasSubstr(kSecret))));
}

TEST_F(S3BlobStoreTest, RetriesPassingErrorsABoundedNumberOfTimes) {
  auto store = Opened();
  http_.script = {S3Failure(503, "SlowDown"), S3Failure(409, "ConditionalRequestConflict"), Reply(200)};
  EXPECT_TRUE(store->Put("a", "x").ok());
  EXPECT_THAT(waits_, SizeIs(2));
  EXPECT_GT(waits_[0], absl::ZeroDuration());

  http_.script.assign(9, S3Failure(500, "InternalError", "We encountered an internal error."));
  const absl::Status failed = store->Put("a", "x");
  EXPECT_EQ(http_.script.size(), 9u - limits::kS3Attempts);
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(failed.message()),
              AllOf(HasSubstr("s3://draws/fleet/a"), HasSubstr("InternalError: We encountered an internal error.")));

  http_.script.assign(9, absl::UnavailableError("Connection refused"));
  const absl::Status unreachable = store->Get("a").status();
  EXPECT_EQ(http_.script.size(), 9u - limits::kS3Attempts);
  EXPECT_EQ(unreachable.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(unreachable.message()),
              AllOf(HasSubstr("http://store:8333"), HasSubstr("s3://draws/fleet/a"), HasSubstr("Connection refused")));
}

TEST_F(S3BlobStoreTest, APutWhoseAnswerWasLostIsFoundToBeThere) {
  auto store = Opened();
  http_.script = {absl::UnavailableError("timeout"), S3Failure(412, "PreconditionFailed"),
                  Reply(200, "", {{"content-length", "5"}}), Reply(206, "hello")};
  EXPECT_TRUE(store->Put("a", "hello").ok());
}

TEST_F(S3BlobStoreTest, OtherBytesUnderTheNameAreNotTaken) {
  auto store = Opened();
  http_.script = {S3Failure(412, "PreconditionFailed"), Reply(200, "", {{"content-length", "5"}}), Reply(206, "jello")};
  EXPECT_EQ(store->Put("a", "hello").code(), absl::StatusCode::kAlreadyExists);
  http_.script = {S3Failure(412, "PreconditionFailed"), Reply(200, "", {{"content-length", "6"}})};
  EXPECT_EQ(store->Put("a", "hello").code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(S3BlobStoreTest, AnObjectThatGoesBetweenPutAndLookIsPutAgain) {
  auto store = Opened();
  http_.script = {S3Failure(412, "PreconditionFailed"), Reply(404), Reply(200)};
  EXPECT_TRUE(store->Put("a", "hello").ok());
}

TEST_F(S3BlobStoreTest, WrongSettingsAreReportedAtOnceWithoutSecrets) {
  auto store = Opened();
  for (const auto& [code, words] :
       {std::pair(403, "SignatureDoesNotMatch"), std::pair(403, "RequestTimeTooSkewed"), std::pair(400, "ExpiredToken"),
        std::pair(404, "NoSuchBucket"), std::pair(301, "PermanentRedirect"), std::pair(403, "AccessDenied")}) {
    http_.script = {S3Failure(code, words)};
    const absl::Status status = store->Put("a", "x");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << words;
    EXPECT_EQ(ReasonOf(status), "STORE_REFUSED") << words;
    EXPECT_THAT(status.ToString(), AllOf(HasSubstr(words), Not(HasSubstr(kSecret)), Not(HasSubstr("session"))));
    EXPECT_TRUE(http_.script.empty());
  }
  EXPECT_TRUE(waits_.empty());
}

TEST_F(S3BlobStoreTest, AFullStoreIsAFullDisk) {
  auto store = Opened();
  http_.script = {S3Failure(507, "InsufficientStorage")};
  const absl::Status full = store->Put("a", "x");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(full), "DISK_FULL");
}

TEST_F(S3BlobStoreTest, ARangeBeyondTheEndIsEmpty) {
  auto store = Opened();
  http_.script = {S3Failure(416, "InvalidRange")};
  EXPECT_EQ(store->GetRange("a", 5, 3).value(), "");
  EXPECT_EQ(http_.asked.front().headers["range"], "bytes=5-7");
  EXPECT_LE(http_.asked.front().timeout, absl::Minutes(1));
}

TEST_F(S3BlobStoreTest, ListsAllPagesInByteOrderWithoutWhatIsNoObject) {
  auto store = Opened();
  const std::string page =
      "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>1/t</NextContinuationToken>"
      "<Contents><Key>fleet/j/2/x</Key></Contents><Contents><Key>fleet/j/.hidden</Key></Contents></ListBucketResult>";
  http_.script = {Reply(200, page), Reply(200,
                                          "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>fleet/j/"
                                          "2-a</Key></Contents></ListBucketResult>")};
  EXPECT_THAT(store->List("j/").value(), ElementsAre("j/2-a", "j/2/x"));
  EXPECT_THAT(Lines(), ElementsAre("GET http://store:8333/draws/?list-type=2&prefix=fleet%2Fj%2F",
                                   "GET http://store:8333/draws/?continuation-token=1%2Ft&list-type=2&prefix=fleet%2Fj"
                                   "%2F"));
  http_.script = {Reply(200, "<html>a proxy</html>")};
  EXPECT_EQ(store->List("j/").status().code(), absl::StatusCode::kInternal);
  http_.script.assign(3, absl::UnavailableError("cut"));
  EXPECT_FALSE(store->List("j/").ok()) << "half a list is no list";
}

TEST_F(S3BlobStoreTest, AListThatDoesNotGetOnEnds) {
  auto store = Opened();
  const HttpReply again =
      Reply(200,
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
            "</ListBucketResult>");
  http_.script = {again, again};
  EXPECT_EQ(store->List("j/").status().code(), absl::StatusCode::kInternal);
}

class Multipart : public S3BlobStoreTest {
 protected:
  const HttpReply absent_ = Reply(404);
  const HttpReply begun_ = Reply(200,
                                 "<InitiateMultipartUploadResult><UploadId>up</UploadId>"
                                 "</InitiateMultipartUploadResult>");
  const HttpReply part_ = Reply(200, "", {{"etag", "\"e\""}});
  std::unique_ptr<S3BlobStore> store_ = Opened({.multipart_bytes = 4, .part_bytes = 3});
  const std::string abort_ = "DELETE http://store:8333/draws/fleet/a?uploadId=up";
};

TEST_F(Multipart, LargeObjectsTravelInParts) {
  http_.script = {absent_, begun_, part_, part_, Reply(200, "<CompleteMultipartUploadResult/>")};
  ASSERT_TRUE(store_->Put("a", "hello").ok());
  EXPECT_THAT(Lines(),
              ElementsAre("HEAD http://store:8333/draws/fleet/a", "POST http://store:8333/draws/fleet/a?uploads=",
                          "PUT http://store:8333/draws/fleet/a?partNumber=1&uploadId=up",
                          "PUT http://store:8333/draws/fleet/a?partNumber=2&uploadId=up",
                          "POST http://store:8333/draws/fleet/a?uploadId=up"));
  EXPECT_EQ(http_.asked[2].body, "hel");
  EXPECT_EQ(http_.asked[3].body, "lo");
  EXPECT_EQ(http_.asked[4].headers["if-none-match"], "*");
  EXPECT_EQ(http_.asked[4].body,
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"e\"</ETag></Part>"
            "<Part><PartNumber>2</PartNumber><ETag>\"e\"</ETag></Part></CompleteMultipartUpload>");
}

TEST_F(Multipart, ALargeFileTravelsInPartsToo) {
  const auto file = SpoolFile::Make(::testing::TempDir());
  ASSERT_TRUE(file->Write(0, "hello", 5).ok());
  http_.script = {absent_, begun_, part_, part_, Reply(200, "<CompleteMultipartUploadResult/>")};
  ASSERT_TRUE(store_->Put("a", file->Content(5)).ok());
  EXPECT_EQ(http_.asked[2].body, "hel");
  EXPECT_EQ(http_.asked[3].body, "lo");
}

TEST_F(Multipart, AFailedPartLeavesNothingBehind) {
  http_.script = {absent_, begun_, part_, S3Failure(403, "AccessDenied"), Reply(204)};
  EXPECT_EQ(ReasonOf(store_->Put("a", "hello")), "STORE_REFUSED");
  EXPECT_EQ(Lines().back(), abort_);
}

TEST_F(Multipart, AnErrorInsideASuccessIsAnError) {
  http_.script = {absent_, begun_, part_, part_, S3Failure(200, "InternalError", "try again"), Reply(204)};
  const absl::Status status = store_->Put("a", "hello");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("try again"));
  EXPECT_EQ(Lines().back(), abort_);
}

TEST_F(Multipart, TheSecondCompletionIsRefusedUnlessTheBytesAreEqual) {
  http_.script = {absent_,
                  begun_,
                  part_,
                  part_,
                  S3Failure(412, "PreconditionFailed"),
                  Reply(204),
                  Reply(200, "", {{"content-length", "5"}}),
                  Reply(206, "hel"),
                  Reply(206, "lo")};
  EXPECT_TRUE(store_->Put("a", "hello").ok());
  http_.script = {Reply(200), Reply(200, "", {{"content-length", "5"}}), Reply(206, "jel")};
  EXPECT_EQ(store_->Put("a", "hello").code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(Multipart, ACompletionWhoseAnswerWasLostIsFoundToBeThere) {
  http_.script = {absent_,
                  begun_,
                  part_,
                  part_,
                  absl::UnavailableError("timeout"),
                  S3Failure(404, "NoSuchUpload"),
                  Reply(404),
                  Reply(200, "", {{"content-length", "5"}}),
                  Reply(206, "hel"),
                  Reply(206, "lo")};
  EXPECT_TRUE(store_->Put("a", "hello").ok());
}

TEST_F(Multipart, AServerWithoutTheConditionOnCompletionIsAskedWithoutIt) {
  http_.script = {absent_, begun_, part_, part_, S3Failure(501, "NotImplemented"), Reply(200)};
  EXPECT_TRUE(store_->Put("a", "hello").ok());
  EXPECT_EQ(http_.asked.back().headers.count("if-none-match"), 0u);
}

TEST_F(S3BlobStoreTest, SignedUrlsAreForOneNameAndItsBytes) {
  const auto client = Client();
  const std::string sha256(64, 'a');
  const S3SignedUrl put = SignS3Put(*client, "a/b", sha256, 5, absl::Minutes(10)).value();
  EXPECT_THAT(put.url, StartsWith("http://store:8333/draws/fleet/a/b?X-Amz-Algorithm=AWS4-HMAC-SHA256&"));
  EXPECT_THAT(put.url, HasSubstr("X-Amz-Expires=600&"));
  EXPECT_THAT(put.url, HasSubstr("X-Amz-SignedHeaders=content-length%3Bhost%3Bif-none-match%3Bx-amz-content-sha256"));
  EXPECT_EQ(put.headers.at("x-amz-content-sha256"), sha256);
  EXPECT_TRUE(http_.asked.empty()) << "signing asks nobody";
  EXPECT_FALSE(SignS3Put(*client, "a/b", "short", 5, absl::Minutes(10)).ok());
  EXPECT_FALSE(SignS3Put(*client, "../b", sha256, 5, absl::Minutes(10)).ok());
  EXPECT_FALSE(SignS3Put(*client, "a/b", sha256, 5, absl::Hours(200)).ok());
  EXPECT_FALSE(SignS3Put(*client, "a/b", sha256, 5, absl::ZeroDuration()).ok());
}

TEST(S3Client, PutsTheBucketIntoTheHostOfAws) {
  ScriptedHttp http;
  FakeClock clock;
  S3Settings settings{.bucket = "draws", .region = "eu-west-1"};
  const auto ask = [&] {
    const S3Client client(settings, &http, &clock, RngKey{1}, [](absl::Duration) {});
    http.script = {Reply(200)};
    EXPECT_TRUE(client.Run({.method = "GET", .key = "a/b"}).ok());
    return http.asked.back().line;
  };
  EXPECT_EQ(ask(), "GET https://draws.s3.eu-west-1.amazonaws.com/a/b");
  settings.bucket = "dra.ws";
  EXPECT_EQ(ask(), "GET https://s3.eu-west-1.amazonaws.com/dra.ws/a/b") << "no certificate has a name of two dots";
}

}  // namespace
}  // namespace chainfleet
