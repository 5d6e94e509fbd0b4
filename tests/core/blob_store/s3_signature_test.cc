// The vectors that AWS publishes for Signature Version 4.
#include "core/store/blob_store/s3_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/percent.h"

namespace chainfleet {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kEmptySha256[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// Amazon S3 API Reference, "Signature Calculations for the Authorization Header" and "Using Query Parameters".
class S3Examples : public ::testing::Test {
 protected:
  const S3Credentials who_{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
  const S3SigningScope scope_{absl::FromCivil(absl::CivilSecond(2013, 5, 24), absl::UTCTimeZone()), "us-east-1"};

  std::string Signed(const std::string& method, const std::string& path, std::map<std::string, std::string> query,
                     std::map<std::string, std::string> headers, const std::string& sha256 = kEmptySha256) const {
    headers.merge(std::map<std::string, std::string>{{"host", "examplebucket.s3.amazonaws.com"},
                                                     {"x-amz-content-sha256", sha256},
                                                     {"x-amz-date", "20130524T000000Z"}});
    return S3Authorization({method, PercentEncoded(path, true), std::move(query), std::move(headers), sha256}, scope_,
                           who_);
  }
};

TEST_F(S3Examples, GetObjectWithRange) {
  EXPECT_EQ(Signed("GET", "/test.txt", {}, {{"range", "bytes=0-9"}}),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_F(S3Examples, PutObjectWithASpecialCharacter) {
  EXPECT_THAT(Signed("PUT", "/test$file.text", {},
                     {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                     "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"),
              EndsWith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST_F(S3Examples, GetBucketLifecycle) {
  EXPECT_THAT(Signed("GET", "/", {{"lifecycle", ""}}, {}),
              EndsWith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST_F(S3Examples, ListObjects) {
  EXPECT_THAT(Signed("GET", "/", {{"max-keys", "2"}, {"prefix", "J"}}, {}),
              EndsWith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST_F(S3Examples, PresignedGet) {
  const std::string query =
      S3PresignedQuery({"GET", "/test.txt", {}, {{"host", "examplebucket.s3.amazonaws.com"}}, "UNSIGNED-PAYLOAD"},
                       scope_, who_, absl::Seconds(86400));
  EXPECT_EQ(query,
            "X-Amz-Algorithm=AWS4-HMAC-SHA256"
            "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
            "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
            "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

// The Signature Version 4 test suite (aws-sig-v4-test-suite): service "service", 2015-08-30.
class TestSuite : public ::testing::Test {
 protected:
  std::string Signed(const std::string& path, std::map<std::string, std::string> query) const {
    return S3Authorization(
        {"GET",
         PercentEncoded(path, true),
         std::move(query),
         {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}},
         kEmptySha256},
        {absl::FromCivil(absl::CivilSecond(2015, 8, 30, 12, 36, 0), absl::UTCTimeZone()), "us-east-1", "service"},
        {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""});
  }
};

TEST_F(TestSuite, GetVanilla) {
  EXPECT_THAT(Signed("/", {}), EndsWith("Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"));
}

TEST_F(TestSuite, GetVanillaQueryOrderKey) {
  EXPECT_THAT(Signed("/", {{"Param2", "value2"}, {"Param1", "value1"}}),
              EndsWith("Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"));
}

TEST_F(TestSuite, GetUnreserved) {
  EXPECT_THAT(Signed("/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", {}),
              EndsWith("Signature=07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"));
}

TEST_F(TestSuite, GetUtf8) {
  EXPECT_THAT(Signed("/\u1234", {}),
              EndsWith("Signature=8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"));
}

TEST(S3Signature, APresignedUrlOfTemporaryCredentialsCarriesTheirToken) {
  const std::string query =
      S3PresignedQuery({"GET", "/a", {}, {{"host", "h"}}, "UNSIGNED-PAYLOAD"}, {absl::UnixEpoch(), "us-east-1"},
                       {"id", "secret", "to/ken"}, absl::Seconds(1));
  EXPECT_THAT(query, HasSubstr("X-Amz-Security-Token=to%2Fken"));
  EXPECT_THAT(query, ::testing::Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace chainfleet
