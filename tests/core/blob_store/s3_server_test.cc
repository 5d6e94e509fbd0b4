// Tests that need a real S3 server; tests/support/with_s3.py runs them with a SeaweedFS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/store/blob_store/s3_limits.h"
#include "core/store/draw_codec/sha256.h"
#include "tests/support/s3_harness.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

HttpReply Send(const std::string& method, const S3SignedUrl& to, const std::string& body) {
  static CurlTransport transport("");
  return transport
      .Send({.method = method,
             .url = to.url,
             .headers = to.headers,
             .body = body,
             .max_reply_bytes = limits::kMiB,
             .stall_timeout = limits::kS3Timeout,
             .timeout = limits::kS3Timeout})
      .value();
}

TEST(S3Server, OneOfManyPutsWins) {
  const auto store = OpenS3("race");
  std::atomic<int> won = 0, lost = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, bytes = std::string(1000, static_cast<char>('a' + i))] {
      const absl::Status status = store->Put("j/0/object", bytes);
      if (status.ok()) {
        ++won;
        EXPECT_EQ(store->Get("j/0/object").value(), bytes);
      } else {
        EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
        ++lost;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(lost, 7);
}

TEST(S3Server, LargeObjectsTravelInPartsAndComeBackWhole) {
  const auto store = OpenS3("parts", {.multipart_bytes = 5 * limits::kMiB, .part_bytes = 5 * limits::kMiB});
  std::string bytes(static_cast<size_t>(12 * limits::kMiB + 7), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  ASSERT_TRUE(store->Put("j/large", bytes).ok());
  EXPECT_EQ(store->SizeBytes("j/large").value(), static_cast<int64_t>(bytes.size()));
  EXPECT_TRUE(store->Get("j/large").value() == bytes);
  EXPECT_EQ(store->GetRange("j/large", 5 * limits::kMiB - 2, 5).value(), bytes.substr(5 * limits::kMiB - 2, 5));
  EXPECT_TRUE(store->Put("j/large", bytes).ok()) << "the same bytes again";
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  EXPECT_EQ(store->Put("j/large", bytes).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(store->Replace("j/large", bytes).ok());
  EXPECT_TRUE(store->Get("j/large").value() == bytes);
}

TEST(S3Server, AnAbandonedUploadIsNoObject) {
  const auto client = MakeS3Client(S3ServerSettings("abandoned"));
  const auto store = OpenS3("abandoned");
  ASSERT_EQ(client->Run({.method = "POST", .key = "abandoned/j/half", .query = {{"uploads", ""}}})->code, 200);
  EXPECT_THAT(store->List("").value(), IsEmpty());
  EXPECT_EQ(store->SizeBytes("j/half").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store->Put("j/half", "whole").ok());
}

TEST(S3Server, ListsMoreThanAPage) {
  const auto store = OpenS3("pages");
  std::vector<std::string> names;
  for (int i = 0; i < 1100; ++i) names.push_back("j/" + std::to_string(100000 + i));
  for (const std::string& name : names) ASSERT_TRUE(store->Put(name, "").ok());
  EXPECT_EQ(store->List("j/").value(), names);
}

TEST(S3Server, ASignedPutTakesTheseBytesUnderThisNameOnce) {
  const auto store = OpenS3("signed");
  const auto client = MakeS3Client(S3ServerSettings("signed"));
  const std::string bytes = "a draw";
  const auto sign = [&](const std::string& name) {
    return SignS3Put(*client, name, Sha256Hex(bytes), static_cast<int64_t>(bytes.size()), absl::Minutes(1)).value();
  };
  S3SignedUrl put = sign("j/0/draw");
  S3SignedUrl elsewhere = put;
  elsewhere.url.replace(elsewhere.url.find("j/0/draw"), 8, "j/1/draw");
  EXPECT_EQ(Send("PUT", elsewhere, bytes).code, 403) << "another name";
  S3SignedUrl unconditional = put;
  unconditional.headers.erase("if-none-match");
  EXPECT_EQ(Send("PUT", unconditional, bytes).code, 403) << "without the condition";
  // Length and digest are signed, too, but this server does not check them: the first read of an object does.
  EXPECT_THAT(store->List("").value(), IsEmpty());
  const HttpReply taken = Send("PUT", put, bytes);
  EXPECT_EQ(taken.code, 200) << taken.body;
  EXPECT_EQ(store->Get("j/0/draw").value(), bytes);
  EXPECT_EQ(Send("PUT", put, bytes).code, 412) << "a second time";
}

TEST(S3Server, ReportsTheRefusalWithoutSecrets) {
  S3Settings settings = S3ServerSettings("refused");
  const auto refusal = [](const S3Settings& with) {
    const absl::Status status = S3BlobStore::Open(MakeS3Client(with), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ReasonOf(status), "STORE_REFUSED");
    EXPECT_THAT(status.ToString(),
                Not(HasSubstr(with.credentials(nullptr, SystemClock())->credentials.secret_access_key)));
    return std::string(status.message());
  };
  S3Credentials wrong = settings.credentials(nullptr, SystemClock())->credentials;
  wrong.secret_access_key = "wrong-secret";
  settings.credentials = FixedCredentials(wrong);
  EXPECT_THAT(refusal(settings), AllOf(HasSubstr("SignatureDoesNotMatch"), HasSubstr("s3://chainfleet/refused/")));
  settings.credentials = FixedCredentials({"reader", "secret-of-reader", ""});
  EXPECT_THAT(refusal(settings), HasSubstr("AccessDenied")) << "may read and not write";
  settings = S3ServerSettings("refused");
  settings.bucket = "no-such-bucket";
  EXPECT_THAT(refusal(settings), HasSubstr("NoSuchBucket"));
}

TEST(S3Server, AnUnreachableServerIsUnavailable) {
  S3Settings settings = S3ServerSettings("unreachable");
  settings.endpoint = "http://127.0.0.1:9";  // discard: nothing listens
  const absl::Status status = S3BlobStore::Open(MakeS3Client(settings), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("http://127.0.0.1:9"));
}

}  // namespace
}  // namespace chainfleet
